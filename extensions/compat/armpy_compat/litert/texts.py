"""LiteRT's error messages, which programs look for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from armpy_compat.litert.file_records import TensorEntry

NOT_READY = "Invoke called on model that is not ready."

NO_DATA = "Tensor data is null. Run allocate_tensors() first"

UNALLOCATED = "Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first"

LENT_MEMORY = """There is at least 1 reference to internal data
      in the interpreter in the form of a numpy array or slice. Be sure to
      only hold the function returned from tensor() if you are using raw
      data access."""

_TYPE_NAMES = {
    **{"f2": "FLOAT16", "f4": "FLOAT32", "f8": "FLOAT64", "c8": "COMPLEX64", "c16": "COMPLEX128"},
    **{f"i{size}": f"INT{8 * size}" for size in (1, 2, 4, 8)},
    **{f"u{size}": f"UINT{8 * size}" for size in (1, 2, 4, 8)},
    "b1": "BOOL",
}


def type_name(dtype: np.dtype[Any]) -> str:  # Any: of every type
    """LiteRT's name of an array's element type."""
    if dtype.kind in "SUTO":
        return "STRING"
    return _TYPE_NAMES.get(f"{dtype.kind}{dtype.itemsize}", "NOTYPE")


def no_tensor(index: int, count: int) -> ValueError:
    """The error for an index that no tensor has."""
    return ValueError(f"Invalid tensor index {index} exceeds max tensor index {count}")


def no_subgraph(index: int, count: int) -> ValueError:
    """The error for an index that no subgraph has."""
    return ValueError(f"Invalid subgraph index {index} exceeds max subgraph index {count}")


def misfit(tensor: TensorEntry, index: int, shape: tuple[int, ...], value: npt.NDArray[Any]) -> str:
    """Why an array does not fit a tensor of a shape; empty if it does."""  # Any: of every type
    got_type = type_name(value.dtype)
    wanted = "INT8" if tensor.type_name in ("INT4", "INT2") else tensor.type_name
    if got_type != wanted:
        return (
            f"Cannot set tensor: Got value of type {got_type} but expected type {tensor.type_name}"
            f" for input {index}, name: {tensor.name} "
        )
    if value.ndim != len(shape):
        return (
            f"Cannot set tensor: Dimension mismatch. Got {value.ndim} but expected {len(shape)}"
            f" for input {index}."
        )
    for axis, (actual, expected) in enumerate(zip(value.shape, shape, strict=True)):
        if actual != expected:
            return (
                f"Cannot set tensor: Dimension mismatch. Got {actual} but expected {expected}"
                f" for dimension {axis} of input {index}."
            )
    return ""


def strict_misfit(index: int, tensor: TensorEntry, old: tuple[int, ...], new: list[int]) -> str:
    """Reason for which a tensor cannot be resized strictly; empty if it can."""
    signature = tensor.shape_signature or old
    if len(new) != len(old):
        return f"tensor->dims->size != dims.size() ({len(old)} != {len(new)})"
    for axis, (known, current, wanted) in enumerate(zip(signature, old, new, strict=True)):
        if known != -1 and current != wanted:
            return (
                f"Attempting to resize dimension {axis} of tensor {index} with value {current} to"
                f" {wanted}. ResizeInputTensorStrict only allows mutating unknown dimensions"
                " identified by -1."
            )
    return ""
