"""Sparse tensors, which hold arrays and can be read; armpy's models take and give none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.tensor import read_only
from armpy_compat.onnxruntime.devices import OrtDevice, check_is_cpu
from armpy_compat.onnxruntime.element_types import element_type_of, tensor_word
from armpy_compat.onnxruntime.enumerations import OrtSparseFormat
from armpy_compat.signatures import checked

_Array: TypeAlias = "npt.NDArray[Any]"  # Any: elements of every type
_Indices: TypeAlias = "npt.NDArray[np.int64]"


class SparseIndexes:
    """Indexes of a sparse tensor's values; each format has some of them.

    Parameters
    ----------
    arrays : dict of str to ndarray, int64
    """

    __slots__ = ("_arrays",)

    def __init__(self, arrays: dict[str, _Indices]) -> None:
        self._arrays = arrays

    def indices(self) -> _Indices:
        """Return the indexes of values or blocks."""
        return self._arrays["indices"]

    def inner(self) -> _Indices:
        """Return the column of each value."""
        return self._arrays["inner"]

    def outer(self) -> _Indices:
        """Return where the values of each row begin, and the end of the last."""
        return self._arrays["outer"]


class SparseTensor:
    """A tensor of which only some elements are stored.

    Parameters
    ----------
    kind : OrtSparseFormat
    dense_shape : sequence of int
    values : ndarray, shape (n, ...)
    indexes : dict of str to ndarray, int64
    """

    __slots__ = ("_indexes", "_kind", "_shape", "_values")

    def __init__(
        self,
        kind: OrtSparseFormat,
        dense_shape: Sequence[int],
        values: _Array,
        indexes: dict[str, _Indices],
    ) -> None:
        self._kind = kind
        self._shape = [int(dim) for dim in dense_shape]
        self._values = values.astype(object) if values.dtype.kind == "U" else values
        self._indexes = {name: read_only(array) for name, array in indexes.items()}

    @classmethod
    @checked
    def sparse_coo_from_numpy(
        cls, dense_shape: Sequence[int], values: _Array, coo_indices: _Indices, device: OrtDevice
    ) -> SparseTensor:
        """Make a tensor from values and their places."""
        check_is_cpu(device)
        return cls(OrtSparseFormat.ORT_SPARSE_COO, dense_shape, values, {"indices": coo_indices})

    @classmethod
    @checked
    def sparse_csr_from_numpy(
        cls,
        dense_shape: Sequence[int],
        values: _Array,
        inner_indices: _Indices,
        outer_indices: _Indices,
        device: OrtDevice,
    ) -> SparseTensor:
        """Make a matrix from values, their columns, and the beginnings of rows."""
        check_is_cpu(device)
        indexes = {"inner": inner_indices, "outer": outer_indices}
        return cls(OrtSparseFormat.ORT_SPARSE_CSRC, dense_shape, values, indexes)

    def _get_c_tensor(self) -> SparseTensor:
        return self

    def format(self) -> OrtSparseFormat:
        """Return the layout."""
        return self._kind

    def dense_shape(self) -> list[int]:
        """Return the shape with all elements."""
        return self._shape

    def data_type(self) -> str:
        """Return the type, such as ``sparse_tensor(float)``."""
        return f"sparse_{tensor_word(element_type_of(self._values.dtype))}"

    def device_name(self) -> str:
        """Return ``cpu``."""
        return "cpu"

    def values(self) -> _Array:
        """Return the stored elements, read-only."""
        return read_only(self._values)

    def as_coo_view(self) -> SparseIndexes:
        """Return the places of values.

        Raises
        ------
        RuntimeError
            If the tensor has another format.
        """
        return self._view(OrtSparseFormat.ORT_SPARSE_COO)

    def as_csrc_view(self) -> SparseIndexes:
        """Return the columns of values and the beginnings of rows; raises as `as_coo_view`."""
        return self._view(OrtSparseFormat.ORT_SPARSE_CSRC)

    def as_blocksparse_view(self) -> SparseIndexes:
        """Return the places of blocks; raises as `as_coo_view`."""
        return self._view(OrtSparseFormat.ORT_SPARSE_BLOCK_SPARSE)

    get_coo_data, get_csrc_data = as_coo_view, as_csrc_view
    get_blocksparse_data = as_blocksparse_view

    def to_cuda(self, device: OrtDevice) -> SparseTensor:
        """Raise RuntimeError: tensors lie in the memory of the host.

        Raises
        ------
        RuntimeError
            Always.
        """
        raise RuntimeError("Cuda is not available in this build")

    def _view(self, kind: OrtSparseFormat) -> SparseIndexes:
        if kind is not self._kind:
            raise RuntimeError(f"the tensor has the format {self._kind.name}, not {kind.name}")
        return SparseIndexes(self._indexes)
