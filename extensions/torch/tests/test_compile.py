"""``torch.compile(model, backend="armpy")``: equal results, sizes, weights, writes, fallbacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeAlias

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")

from torch import nn  # noqa: E402

import armpy_torch  # noqa: E402
from armpy_testing.models.torch_models import MODELS, built  # noqa: E402
from armpy_torch import compiled_graph  # noqa: E402
from armpy_torch.preparation import converters  # noqa: E402
from armpy_torch.verification import differing_operators  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of PyTorch and its exporter, about themselves

Tensor: TypeAlias = Any  # PyTorch may be missing


@pytest.fixture(autouse=True)
def _without_gradients() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(3)
    with torch.no_grad():
        yield


Compiled: TypeAlias = Callable[..., Any]  # what the program returns


def compiled(program: Callable[..., object], **options: object) -> Compiled:
    """A program on armpy; what armpy refuses is an error, but for layers on other backends."""
    chosen = {"backends": ["NumbaAcc"], "verify": False, **options}
    return torch.compile(program, backend="armpy", options=chosen)


def assert_equal(actual: object, expected: object) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def new_reports(count: int) -> tuple[armpy_torch.GraphReport, ...]:
    """Reports of the latest graphs."""
    return armpy_torch.reports()[-count:]


def test_pytorch_finds_the_backend_by_its_name() -> None:
    assert "armpy" in torch._dynamo.list_backends()


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_network_has_pytorchs_results_at_each_batch(name: str) -> None:
    model, values = built(name)
    fast = torch.compile(model, backend="armpy", options={"on_fallback": "error"})
    for batch in (1, 2, 3, 2):
        several = torch.cat([values] * batch)
        assert_equal(fast(several), model(several))
    assert [len(report.placements) for report in new_reports(2)] == [1, 1]


def test_open_sizes_stay_open_in_one_network() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    fast = compiled(lambda x: model(x) * x.shape[0] + x.sum(), on_fallback="error")
    for batch in (3, 5, 7, 9, 11):
        values = torch.randn(batch, 4)
        assert_equal(fast(values), model(values) * batch + values.sum())
    first, later = new_reports(2)
    assert (len(first.placements), len(later.placements)) == (1, 1)


def test_sizes_and_several_outputs_are_returned() -> None:
    def program(x: Tensor) -> tuple[object, ...]:
        return x * 2, x.shape[0] * 3, None, {"sum": x.sum(0)}

    fast = compiled(program, on_fallback="error")
    for rows in (2, 4, 6):
        values = torch.randn(rows, 3)
        twice, number, nothing, named = fast(values)
        assert_equal((twice, named["sum"]), (values * 2, values.sum(0)))
        assert (number, nothing) == (rows * 3, None)


def test_numbers_of_the_program_are_constants_of_networks() -> None:
    fast = compiled(lambda x, times: x * times + times, on_fallback="error")
    values = torch.randn(2, 3)
    for times in (2, 3, 4, 3):
        assert_equal(fast(values, times), values * times + times)


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (torch.any, torch.uint8),
        (lambda x: x.cumsum(0), torch.bfloat16),
        (lambda x: x.sum(1), torch.float16),
    ],
)
def test_reductions_have_pytorchs_types(function: Compiled, dtype: Any) -> None:
    values = torch.arange(12).reshape(3, 4).to(dtype)
    assert_equal(compiled(function)(values), function(values))


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int32", "int64", "bool"])
def test_types_are_kept(dtype: str) -> None:
    values = torch.randint(0, 2, (3, 4)).to(getattr(torch, dtype))
    program = torch.logical_not if dtype == "bool" else lambda x: x + x
    result = compiled(program, backends=["CpuRef"], on_fallback="error")(values)
    assert result.dtype == values.dtype
    torch.testing.assert_close(result, program(values))


def test_changed_weights_are_noticed() -> None:
    model = nn.Linear(3, 3)
    fast = compiled(model, on_fallback="error")
    values = torch.randn(2, 3)
    assert_equal(fast(values), model(values))
    model.weight.mul_(2)
    assert_equal(fast(values), model(values))
    model.load_state_dict({"weight": torch.eye(3), "bias": torch.zeros(3)})
    assert_equal(fast(values), values)
    model.weight = nn.Parameter(torch.zeros(3, 3))
    assert_equal(fast(values), torch.zeros(2, 3))
    assert sum(report.rebuilds for report in new_reports(2)) >= 2


def test_changed_weights_of_inference_mode_are_noticed() -> None:
    with torch.inference_mode():
        model, values = nn.Linear(3, 3), torch.randn(2, 3)
        fast = compiled(model)
        for _ in range(2):
            assert_equal(fast(values), model(values))
            model.weight.mul_(2)


def test_writes_to_inputs_and_buffers_are_done() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x: Tensor) -> Tensor:
            x.add_(1)
            self.total.add_(x)
            return self.total * 2

    model, plain = Counting(), Counting()
    fast = compiled(model, on_fallback="error")
    for _ in range(3):
        values = torch.randn(3)
        expected_values = values.clone()
        assert_equal(fast(values), plain(expected_values))
        assert_equal((values, model.total), (expected_values, plain.total))


def test_a_write_is_done_whose_result_is_not_read() -> None:
    def program(x: Tensor, count: Tensor) -> Tensor:
        count.add_(1)
        return x * 2

    values, count = torch.randn(3), torch.zeros((), dtype=torch.int64)
    fast = compiled(program, on_fallback="error")
    for number in (1, 2):
        assert_equal(fast(values, count), values * 2)
        assert count == number


def test_a_call_with_a_written_argument_that_overlaps_another_one_is_pytorchs() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        x.add_(1)
        return y * 2

    fast = compiled(program)
    fast(torch.zeros(4), torch.zeros(4))
    memory, plain = torch.arange(6.0), torch.arange(6.0)
    assert_equal(fast(memory[:4], memory[2:]), program(plain[:4], plain[2:]))


TABLE = torch.arange(8.0).reshape(4, 2)
WRONG = torch.tensor([0, -1])


@pytest.mark.parametrize(
    "program",
    [
        lambda i: nn.functional.embedding(i, TABLE),
        lambda i: TABLE.index_select(0, i),
        lambda i: TABLE.gather(0, i[None]),
        lambda i: TABLE.scatter(0, i[None], 5.0),
        lambda i: nn.functional.one_hot(i, 4),
        lambda i: TABLE[i - 4],
        lambda i: nn.functional.cross_entropy(TABLE[:2], i),
        lambda i: TABLE.long() // i,
    ],
)
def test_elements_that_pytorch_refuses_are_its_errors(program: Compiled) -> None:
    fast, right = compiled(program), torch.ones(2, dtype=torch.int64)
    assert_equal(fast(right), program(right))
    with pytest.raises((IndexError, RuntimeError)):
        program(WRONG)
    with pytest.raises((IndexError, RuntimeError)):
        fast(WRONG)


def test_sizes_that_the_exported_program_does_not_hold_for_get_another_one() -> None:
    def program(x: Tensor) -> Tensor:
        return nn.functional.adaptive_avg_pool2d(x, (3, 2)) * 2

    fast = compiled(program)
    for height, width in ((6, 4), (7, 5), (9, 6), (8, 8)):
        values = torch.randn(1, 2, height, width)
        assert_equal(fast(values), program(values))


def test_a_wrong_conversion_is_found_by_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    known = converters().functions
    (relu, *_), (magnitude, *_) = known["aten::relu"], known["aten::abs"]
    monkeypatch.setattr(relu, "onnx_function", magnitude.onnx_function)
    values = -torch.ones(3)
    fast = compiled(lambda x: torch.relu(x) + x, verify=True)
    calls: list[Future[Tensor]] = []

    def call_meanwhile(*arguments: Any) -> list[str]:
        calls.append(threads.submit(torch.no_grad()(fast), values))
        wait(calls, 0.5)  # the call itself may wait for the rejection
        return differing_operators(*arguments)

    monkeypatch.setattr(compiled_graph, "differing_operators", call_meanwhile)
    expected = r"runs in PyTorch: aten.relu.default .*1.0 at \(0,\)"
    with ThreadPoolExecutor(1) as threads:
        with pytest.warns(RuntimeWarning, match=expected):
            assert_equal(fast(values), values)
        assert_equal(calls[0].result(), values)
    assert_equal(fast(values), values)
    assert new_reports(1)[0].placements == ()
    unverified = compiled(lambda x: torch.relu(x) + x, verify=False)
    assert_equal(unverified(values), torch.zeros(3))
    verified = compiled(lambda x: torch.relu(x) + x, verify=True)
    assert_equal(verified(-values), -2 * values)
    assert_equal(verified(values), torch.zeros(3))  # no longer compared


def test_fused_layers_of_transformers_run_on_armpy() -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    values, ignored = torch.randn(2, 5, 16), torch.zeros(2, 5, dtype=torch.bool)
    ignored[1, 3:] = True
    assert_equal(compiled(layer, on_fallback="error")(values), layer(values))
    masked = compiled(layer)(values, src_key_padding_mask=ignored)
    assert_equal(masked, layer(values, src_key_padding_mask=ignored))


def test_batches_are_normalised_by_pytorch_in_training() -> None:
    values = torch.randn(5, 4)
    for model in (nn.BatchNorm1d(4), nn.BatchNorm1d(4, track_running_stats=False)):
        expected = torch.nn.functional.batch_norm(values, None, None, training=True)
        assert_equal(compiled(model)(values), expected)
        assert "batch_norm" in new_reports(1)[0].reason


def test_autocast_holds_in_the_graph() -> None:
    model, values = nn.Linear(4, 3), torch.randn(2, 4)
    with torch.autocast("cpu", torch.bfloat16):
        actual, expected = compiled(model, backends=["CpuRef"])(values), model(values)
    assert actual.dtype == torch.bfloat16
    torch.testing.assert_close(actual, expected, rtol=0.02, atol=0.02)


def test_random_numbers_come_from_pytorch() -> None:
    def program(x: Tensor) -> Tensor:
        return x + torch.rand_like(x)

    values = torch.zeros(4)
    torch.manual_seed(1)
    expected = program(values)
    torch.manual_seed(1)
    assert_equal(compiled(program)(values), expected)
    (report,) = new_reports(1)
    assert "aten.rand_like.default draws random numbers" in report.reason
    assert len(report.placements) == 1  # of the sum


def test_outputs_that_share_memory_share_it() -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        return y, y[0]

    whole, row = compiled(program)(torch.ones(2, 3))
    whole.zero_()
    assert_equal(row, torch.zeros(3))


def test_a_view_of_an_input_stays_a_view() -> None:
    values = torch.zeros(2, 3)
    view = compiled(lambda x: x.transpose(0, 1))(values)
    view.add_(1)
    assert_equal(values, torch.ones(2, 3))
    assert "shares memory with an input" in new_reports(1)[0].reason


def test_a_refused_graph_runs_in_pytorch() -> None:
    values = torch.randn(3, 3)
    fast = compiled(lambda x: torch.linalg.eigvalsh(x @ x.T))
    assert_equal(fast(values), torch.linalg.eigvalsh(values @ values.T))
    assert "linalg_eigh" in new_reports(1)[0].reason


def test_parts_around_a_graph_break_run_on_armpy() -> None:
    def program(x: Tensor) -> Tensor:
        y = torch.relu(x)
        torch._dynamo.graph_break()
        return y * 3

    values = torch.randn(4)
    assert_equal(compiled(program, on_fallback="error")(values), torch.relu(values) * 3)
    assert [report.reason for report in new_reports(2)] == ["", ""]


def test_control_flow_of_pytorch_becomes_layers() -> None:
    def program(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    fast = compiled(program, backends=["CpuRef"], on_fallback="error")
    for values in (torch.ones(3), -torch.ones(3)):
        assert_equal(fast(values), program(values))
