"""Memory that PyTorch and armpy share: weights, inputs and outputs."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")

from torch import nn  # noqa: E402

import armpy_torch  # noqa: E402
from armpy.errors import UnimplementedError  # noqa: E402
from armpy_torch.tensors import array_of, tensor_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of PyTorch and its exporter, about themselves

Tensor: TypeAlias = Any  # PyTorch may be missing


def test_constants_lie_in_the_memory_of_parameters() -> None:
    module = nn.Linear(64, 32)
    program = torch.export.export(module, (torch.randn(1, 64),))
    with armpy_torch.load(program, backends=["CpuRef"]) as model:
        constants = [
            value.data
            for layer in model.graph.layers
            for value in layer.inputs
            if value is not None and value.data is not None
        ]
        weight = module.weight.detach().numpy()
        assert any(np.shares_memory(constant, weight) for constant in constants)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.bfloat16])
def test_tensors_and_arrays_are_one_memory(dtype: Any) -> None:
    tensor = torch.ones(3, 4, dtype=dtype)
    array = array_of(tensor)
    assert array.ctypes.data == tensor.data_ptr()
    back = tensor_of(array, dtype)
    assert back.data_ptr() == tensor.data_ptr()
    assert torch.equal(back, tensor)


def test_a_read_only_result_is_copied() -> None:
    array = np.ones(3, np.float32)
    array.flags.writeable = False
    tensor_of(array, torch.float32).add_(1)
    assert array.tolist() == [1, 1, 1]


def test_conjugated_and_negated_tensors_are_resolved() -> None:
    values = torch.tensor([1 + 2j])
    assert array_of(values.conj()).tolist() == [1 - 2j]
    assert array_of(values.conj().imag).tolist() == [-2]


@pytest.mark.parametrize(
    "tensor",
    [torch.ones(2, device="meta"), torch.ones(2, 2).to_sparse()],
    ids=["device", "sparse"],
)
def test_other_tensors_are_refused(tensor: Tensor) -> None:
    with pytest.raises(UnimplementedError, match=r"device cpu, layout torch.strided; got device"):
        array_of(tensor)
