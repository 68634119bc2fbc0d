"""Descriptions of a model's inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsIndex, overload

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError, did_you_mean
from armpy.tensor import Quantization, Shape, TensorInfo, chosen_shape, format_shape
from armpy.types import DataType

if TYPE_CHECKING:
    import numpy.typing as npt

    from armpy.ops.operation import Array


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """An input or output of a model.

    Parameters
    ----------
    info : TensorInfo
        Dimensions that the caller can choose are None.
    """

    name: str
    info: TensorInfo

    @property
    def shape(self) -> Shape | None:
        """Dimensions; None where the caller can choose."""
        return self.info.shape

    @property
    def data_type(self) -> DataType:
        """Element type."""
        return self.info.data_type

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """NumPy dtype of the stored elements.

        It is that of the integers of a quantised tensor, of the bit patterns of floats that NumPy
        has no type for, and ``object`` for strings.
        """
        return self.data_type.dtype

    @property
    def quantization(self) -> Quantization | None:
        """Scale and zero point of a quantised tensor."""
        return self.info.quantization

    def quantize(self, real: npt.ArrayLike) -> Array:
        """Real numbers as the tensor's elements; see `Quantization.quantize`.

        Raises InvalidArgumentError if the tensor has no quantisation.
        """
        return self._known_quantization.quantize(real, self.data_type)

    def dequantize(self, stored: npt.ArrayLike) -> Array:
        """The real numbers that elements stand for; see `Quantization.dequantize`.

        Raises InvalidArgumentError if the tensor has no quantisation.
        """
        return self._known_quantization.dequantize(stored)

    def zeros(self, shape: Sequence[int] | None = None) -> Array:
        """Make an array of zeros for the tensor.

        Parameters
        ----------
        shape : sequence of int, optional
            Its sizes; needed if the tensor leaves a dimension open.

        Returns
        -------
        ndarray, dtype of the tensor, shape `shape`
            Stored zeros, which a quantised tensor's zero point need not be; empty strings.

        Raises
        ------
        InvalidArgumentError
            If `shape` is left out and a dimension is open, or if it does not fit.
        """
        return self.data_type.zeros(self._sizes(shape, "zeros"))

    def random(
        self, seed: int | np.random.Generator = 0, shape: Sequence[int] | None = None
    ) -> Array:
        """Make an array of random elements that most models can take.

        Parameters
        ----------
        seed : int or numpy.random.Generator
            Equal seeds make equal arrays; a generator makes another one each time.
        shape : sequence of int, optional
            Its sizes; needed if the tensor leaves a dimension open.

        Returns
        -------
        ndarray, dtype of the tensor, shape `shape`
            Floats from -1 to 1; integers of all the type's range if the tensor is quantised or
            has unquantised bytes; 0 and 1 otherwise, as integers may be indexes; empty strings.

        Raises
        ------
        InvalidArgumentError
            If `shape` is left out and a dimension is open, or if it does not fit.

        Notes
        -----
        Elements of floats that NumPy has no type for are the bit patterns 0 and 1.
        """
        sizes = self._sizes(shape, "random")
        return self.data_type.random(np.random.default_rng(seed), sizes)

    def _sizes(self, shape: Sequence[int] | None, method: str) -> tuple[int, ...]:
        """The shape of an array for the tensor: the caller's, or its own."""
        if shape is not None:
            return chosen_shape(self.name, self.shape, shape)
        if self.info.is_fully_shaped:
            return self.info.known_shape
        dims = (None,) if self.shape is None else self.shape
        example = tuple(1 if dim is None else dim for dim in dims)
        raise InvalidArgumentError(
            "the tensor leaves sizes open",
            where=f"tensor '{self.name}'",
            expected="a shape",
            actual=format_shape(self.shape),
            fix=f"Pass the sizes, for example {method}(shape={example})",
        )

    @property
    def _known_quantization(self) -> Quantization:
        """The quantisation, where there is one."""
        if self.quantization is None:
            raise InvalidArgumentError(
                "the tensor is not quantised", where=f"tensor '{self.name}'", actual=str(self.info)
            )
        return self.quantization

    def __repr__(self) -> str:
        return f"TensorSpec({self.name!r}, {self.info})"


class TensorSpecs(tuple[TensorSpec, ...]):
    """Inputs or outputs of a model, in order; each is found by its name, too.

    Examples
    --------
    >>> model.inputs[0] is model.inputs["image"]                        # doctest: +SKIP
    True
    """

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> TensorSpec: ...

    @overload
    def __getitem__(self, key: slice) -> tuple[TensorSpec, ...]: ...

    def __getitem__(self, key: SupportsIndex | slice | str) -> TensorSpec | tuple[TensorSpec, ...]:
        """Return the tensor at a position or of a name; raises InvalidArgumentError for others."""
        if not isinstance(key, str):
            return super().__getitem__(key)
        for spec in self:
            if spec.name == key:
                return spec
        names = [spec.name for spec in self]
        raise InvalidArgumentError(
            "there is no tensor of this name",
            expected=", ".join(map(repr, names)) or "a position, as no tensor has a name",
            actual=repr(key),
            fix=did_you_mean(key, names, "Use an expected name, or a position"),
        )

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        from armpy.compiler.notebooks import tensors_html  # noqa: PLC0415 - for notebooks alone

        return tensors_html("", [(spec.name, spec.info) for spec in self])
