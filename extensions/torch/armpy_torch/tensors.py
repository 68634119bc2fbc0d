"""PyTorch's tensors as arrays and back, without a copy wherever their memory allows it."""

from __future__ import annotations

import numpy as np
import torch

from armpy.errors import UnimplementedError
from armpy.ops.operation import Array

_BITS = {1: torch.uint8, 2: torch.uint16}
"""Types of the same size for elements that NumPy has no type for, by size in bytes."""


def array_of(tensor: torch.Tensor) -> Array:
    """A tensor's elements as armpy stores them: small floats as their bits.

    Parameters
    ----------
    tensor : torch.Tensor
        On the CPU, of any strides.

    Returns
    -------
    ndarray
        Over the tensor's memory. Tensors whose negation or conjugation is still to be done are
        copied.

    Raises
    ------
    UnimplementedError
        If its elements are not in the CPU's memory, or are not stored one by one.
    """
    if tensor.device.type != "cpu" or tensor.layout != torch.strided or tensor.is_quantized:
        raise UnimplementedError(
            "the tensor is not a dense one in the CPU's memory",
            expected="device cpu, layout torch.strided",
            actual=f"device {tensor.device}, layout {tensor.layout}, dtype {tensor.dtype}",
            fix="Move the model and its inputs to the CPU, or leave them to PyTorch",
        )
    plain = tensor.detach().resolve_neg().resolve_conj()
    if _has_numpy_type(plain.dtype):
        array: Array = plain.numpy()
        return array
    bits: Array = plain.view(_BITS[plain.element_size()]).numpy()
    return bits


def tensor_of(array: Array, dtype: torch.dtype) -> torch.Tensor:
    """A result as a tensor over its memory.

    Parameters
    ----------
    array : ndarray
        Elements as numbers, or of `dtype`'s size as bits.
    """
    elements = np.asarray(array)
    if not elements.flags.writeable:  # a constant of the network, which a program could change
        elements = elements.copy()
    if _has_numpy_type(dtype):
        return torch.from_numpy(elements).to(dtype)
    bits = _BITS[dtype.itemsize]
    if elements.dtype.itemsize == dtype.itemsize:
        return torch.from_numpy(elements.view(f"u{dtype.itemsize}")).to(bits).view(dtype)
    return torch.from_numpy(elements).to(dtype)


def _has_numpy_type(dtype: torch.dtype) -> bool:
    """Return whether NumPy has a type for the elements."""
    return dtype != torch.bfloat16 and "float8" not in str(dtype)
