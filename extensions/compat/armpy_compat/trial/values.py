"""Values that programs pass to engines and get from them, as plain arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = list[npt.NDArray[Any]]


def arrays_of(value: object) -> Arrays:
    """List the arrays of a value in a fixed order; texts are arrays of `str`.

    Parameters
    ----------
    value : object
        Array, number, text, value of ONNX Runtime, or a list, tuple or mapping of these.
    """
    return [*_arrays(value)]


def _arrays(value: object) -> Iterator[npt.NDArray[Any]]:
    if isinstance(value, Mapping):
        keys = sorted(value, key=str)
        yield np.array([str(key) for key in keys], np.str_)
        for key in keys:
            yield from _arrays(value[key])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _arrays(item)
    elif value is not None:
        # ONNX Runtime's OrtValue and SparseTensor answer `numpy`, arrays do not.
        numpy = getattr(value, "numpy", None)
        yield _plain(np.asarray(value if numpy is None else numpy()))


def _plain(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array of a type of NumPy's own: texts for objects, float32 for bfloat16 and the like."""
    if array.dtype.kind in "OSU":
        return np.array([str(item) for item in array.flat], np.str_).reshape(array.shape)
    if array.dtype.kind == "V":
        return array.astype(np.float32)
    return np.ascontiguousarray(array).reshape(array.shape)


def shapes_of(arrays: Sequence[npt.NDArray[Any]]) -> str:
    """Shapes as text: ``1x16x16 1``; ``-`` for a scalar."""
    return " ".join("x".join(map(str, array.shape)) or "-" for array in arrays)


def digest_of(arrays: Sequence[npt.NDArray[Any]]) -> str:
    """Digest of types, shapes and elements."""
    digest = blake2b(digest_size=16)
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
