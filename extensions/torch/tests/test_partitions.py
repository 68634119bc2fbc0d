"""Graphs with operators that armpy refuses: the parts around these run on armpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")

from torch import nn  # noqa: E402

import armpy_torch  # noqa: E402
from armpy.errors import BackendCapabilityError  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of PyTorch and its exporter, about themselves

Tensor: TypeAlias = Any  # PyTorch may be missing


@pytest.fixture(autouse=True)
def _without_gradients() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(3)
    with torch.no_grad():
        yield


class Divided(nn.Module):
    """Two linear layers, and between them what has no ONNX operators."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 6), nn.Linear(6, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        y = self.first(x).relu()
        values = torch.linalg.eigvalsh(y @ y.transpose(-1, -2))
        return self.second(y + values.sum()), x.shape[0] * 2


def compiled(program: Callable[..., object], **options: object) -> Callable[..., Any]:
    """A program on armpy, whose first results are armpy's own as well."""
    chosen = {"backends": ["NumbaAcc"], "verify": False, **options}
    return torch.compile(program, backend="armpy", options=chosen)


def assert_equal(actual: object, expected: object) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)


def latest() -> armpy_torch.GraphReport:
    return armpy_torch.reports()[-1]


def test_parts_around_a_refused_operator_run_on_armpy() -> None:
    model, values = Divided(), torch.randn(2, 5, 8)
    assert_equal(compiled(model)(values), model(values))
    assert "_linalg_eigh.default has no ONNX operators" in latest().reason
    assert "linear" not in latest().reason
    assert len(latest().placements) == 2


def test_open_sizes_stay_open_in_parts() -> None:
    model = Divided()
    fast = compiled(model)
    networks = []
    for batch in (2, 3, 4, 7):
        values = torch.randn(batch, 5, 8)
        assert_equal(fast(values), model(values))
        networks.append(len(latest().placements))
    assert networks == [2, 2, 2, 2]


def test_changed_weights_of_a_part_are_noticed() -> None:
    model, values = Divided(), torch.randn(2, 5, 8)
    fast = compiled(model)
    fast(values)
    model.second.weight.mul_(2)
    assert_equal(fast(values), model(values))
    assert latest().rebuilds == 1


def test_writes_are_done_after_the_parts() -> None:
    def program(x: Tensor, count: Tensor) -> Tensor:
        count.add_(1)
        y = torch.linalg.eigvalsh(x @ x.T)
        x.mul_(2)
        return y + x.sum() + count

    x, plain_x = (torch.ones(3, 3) for _ in range(2))
    count, plain_count = (torch.zeros(()) for _ in range(2))
    fast = compiled(program)
    for _ in range(2):
        assert_equal(fast(x, count), program(plain_x, plain_count))
        assert_equal((x, count), (plain_x, plain_count))


@pytest.mark.parametrize("first", [lambda x: x * 2, lambda x: x.sum(0, keepdim=True) @ x])
def test_random_numbers_are_drawn_in_pytorchs_order(first: Callable[[Tensor], Tensor]) -> None:
    def program(x: Tensor) -> Tensor:
        y = nn.functional.dropout(first(x), 0.5, True)
        z = torch.rand_like(x) + nn.functional.dropout(x, 0.5, True)
        return first(y + z) * torch.rand_like(y)

    values = torch.randn(4, 4)
    fast = compiled(program)
    torch.manual_seed(1)
    expected = program(values)
    torch.manual_seed(1)
    assert_equal(fast(values), expected)


def test_parts_that_would_change_the_order_of_random_numbers_are_not_made() -> None:
    def program(x: Tensor) -> Tensor:
        first = nn.functional.dropout(x * 2, 0.5, True)
        second = torch.rand(4)
        third = nn.functional.dropout(x * 3, 0.5, True)  # both products would be one part
        return first * second + third

    values = torch.randn(4)
    torch.manual_seed(1)
    expected = program(values)
    torch.manual_seed(1)
    assert_equal(compiled(program)(values), expected)
    assert latest().placements == ()
    assert "native_dropout.default draws random numbers" in latest().reason


def test_control_flow_runs_in_pytorch_beside_parts() -> None:
    def program(x: Tensor) -> Tensor:
        y = torch.linalg.eigvalsh(x @ x.T)
        return torch.cond(y.sum() > 0, lambda y: y + 1, lambda y: y - 1, (y,)) * 2

    values = torch.randn(3, 3)
    assert_equal(compiled(program)(values), program(values))
    assert "cond is control flow" in latest().reason


def test_an_error_names_each_operator_that_armpy_refuses() -> None:
    def program(x: Tensor) -> Tensor:
        return torch.linalg.eigvalsh(x @ x.T) + torch.rand_like(x) + torch.poisson(x.abs())

    pattern = r"graph \d+: .*_linalg_eigh.*no ONNX.*rand_like.*random numbers.*poisson"
    with pytest.raises(BackendCapabilityError, match=pattern):
        compiled(program, on_fallback="error")(torch.randn(3, 3))
