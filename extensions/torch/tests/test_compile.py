"""``torch.compile(model, backend="armpy")``: equal results, sizes, weights, writes, fallbacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")

from torch import nn  # noqa: E402

import armpy_torch  # noqa: E402
from armpy_testing.models.torch_models import MODELS, built  # noqa: E402

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
    chosen = {"backends": ["NumbaAcc"], **options}
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


def test_batches_are_normalised_by_pytorch_in_training() -> None:
    values = torch.randn(5, 4)
    for model in (nn.BatchNorm1d(4), nn.BatchNorm1d(4, track_running_stats=False)):
        expected = torch.nn.functional.batch_norm(values, None, None, training=True)
        assert_equal(compiled(model)(values), expected)
        assert "statistics of the batch" in new_reports(1)[0].reason


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
