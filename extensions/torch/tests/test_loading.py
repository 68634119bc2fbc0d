"""``armpy_torch.load`` of exported programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")

from torch import nn  # noqa: E402

import armpy  # noqa: E402
import armpy_torch  # noqa: E402
from armpy.errors import UnimplementedError  # noqa: E402
from armpy_torch.preparation import converters  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of PyTorch and its exporter, about themselves

Tensor: TypeAlias = Any  # PyTorch may be missing


@pytest.fixture
def module() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval()


def test_an_exported_program_has_pytorchs_results(module: nn.Module) -> None:
    batch = torch.export.Dim("batch", max=16)
    values = torch.randn(2, 3, 6, 6)
    program = torch.export.export(module, (values,), dynamic_shapes=({0: batch},))
    with armpy_torch.load(program) as model, torch.no_grad():
        assert model.inputs[0].shape == (None, 3, 6, 6)
        for several in (values, torch.cat([values] * 3)):
            np.testing.assert_allclose(model(several), module(several), rtol=1e-4, atol=1e-5)


def test_a_program_can_be_saved_as_a_compiled_model(module: nn.Module, tmp_path: Path) -> None:
    values = torch.randn(1, 3, 6, 6)
    path = tmp_path / "module.armpy"
    with armpy_torch.load(torch.export.export(module, (values,))) as model:
        expected = model(values)
        model.save(path)
    with armpy.load(path) as saved:
        np.testing.assert_array_equal(saved(values), expected)


def test_nested_arguments_are_inputs_in_order() -> None:
    class Adding(nn.Module):
        def forward(self, first: Tensor, others: dict[str, Tensor]) -> Tensor:
            return first - others["a"] * others["b"]

    first, a, b = torch.randn(3, 4).unbind()
    program = torch.export.export(Adding(), (first, {"a": a, "b": b}))
    with armpy_torch.load(program) as model:
        np.testing.assert_allclose(model(first, a, b), first - a * b, rtol=1e-5)


class Parts(nn.Module):
    """Two ways to cut an axis: together they fix its size, the first alone limits it."""

    def __init__(self, second: int) -> None:
        super().__init__()
        self.second = second

    def forward(self, x: Tensor) -> Tensor:
        parts = [*x.chunk(3, -1), *(x.split(self.second, -1) if self.second else ())]
        return torch.stack([part.sum() for part in parts])


def test_a_size_that_the_program_fixes_is_fixed() -> None:
    program = exported(Parts(4))
    with armpy_torch.load(program) as model:
        assert model.inputs[0].shape == (1, 2, 9)


def test_a_program_for_some_sizes_of_an_open_dimension_is_refused() -> None:
    with pytest.raises(UnimplementedError, match=r"does not hold for all sizes.*size\(\)\[2\]"):
        armpy_torch.load(exported(Parts(0)))


def exported(module: nn.Module) -> Any:
    axes = ({2: torch.export.Dim.AUTO},)
    return torch.export.export(module, (torch.zeros(1, 2, 9),), dynamic_shapes=axes)


def test_a_wrong_conversion_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Rectified(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.relu(x)

    known = converters().functions
    (relu, *_), (magnitude, *_) = known["aten::relu"], known["aten::abs"]
    monkeypatch.setattr(relu, "onnx_function", magnitude.onnx_function)
    program = torch.export.export(Rectified(), (-torch.ones(3),))
    with pytest.raises(UnimplementedError, match=r"differ from PyTorch's.*aten.relu.default"):
        armpy_torch.load(program)
    armpy_torch.load(program, verify=False).close()


def test_a_program_that_writes_is_refused() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x: Tensor) -> Tensor:
            self.total.add_(x)
            return self.total * 2

    program = torch.export.export(Counting(), (torch.ones(3),))
    with pytest.raises(UnimplementedError, match=r"writes to its inputs or buffers.*'total'"):
        armpy_torch.load(program)
