"""Descriptions of a model's inputs and outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.tensor import Quantization, Shape, TensorInfo
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
    """Inputs or outputs of a model, in order."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        from armpy.compiler.notebooks import tensors_html  # noqa: PLC0415 - for notebooks alone

        return tensors_html("", [(spec.name, spec.info) for spec in self])
