"""What the edge of a model is made of."""

from __future__ import annotations

from dataclasses import dataclass

from armpy.tensor import Quantization, Shape, TensorInfo
from armpy.types import DataType


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """An input or output of a model.

    Parameters
    ----------
    name : str
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
