"""A finished model as plain data, to be validated, converted, lowered and drawn.

Notes
-----
`armpy_nnapi.Model` is the builder that applications call; it makes one of these when it is
finished. Everything else of this package works on these.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import field

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.ops.operation import Array
from armpy.tensor import Quantization, Shape, TensorInfo
from armpy.types import DataType
from armpy_nnapi.codes import OPERAND_TRAITS, OperandCode, is_extension


class Lifetime(enum.Enum):
    """Lifetime of an operand: the origin of its elements; NNAPI ``OperandLifeTime``."""

    TEMPORARY_VARIABLE = 0
    SUBGRAPH_INPUT = 1
    SUBGRAPH_OUTPUT = 2
    CONSTANT_COPY = 3
    CONSTANT_REFERENCE = 4
    NO_VALUE = 5
    SUBGRAPH = 6

    @property
    def is_constant(self) -> bool:
        """Return whether the elements are part of the model."""
        return self in (Lifetime.CONSTANT_COPY, Lifetime.CONSTANT_REFERENCE)


@dataclass(frozen=True, slots=True)
class ChannelQuant:
    """Scales of a per-channel quantised operand; NNAPI ``SymmPerChannelQuantParams``."""

    scales: tuple[float, ...]
    channel_dim: int


@dataclass(frozen=True, slots=True)
class ExtensionTypeInformation:
    """Description of an operand type of a device's own."""

    type: int  # number within the extension
    is_tensor: bool
    size_bytes: int  # of one element


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of a model.

    References
    ----------
    NNAPI HAL 1.3 ``Operand``.
    """

    type: int  # an `OperandCode`, or the code of an extension's type
    dimensions: tuple[int, ...] = ()
    """0 where not known; empty for a scalar, and for a tensor of unknown rank."""
    scale: float = 0.0
    zero_point: int = 0
    lifetime: Lifetime = Lifetime.TEMPORARY_VARIABLE
    data: bytes | memoryview | None = field(default=None, repr=False)
    """Elements of a constant, little-endian, C order."""
    channel_quant: ChannelQuant | None = None  # for TENSOR_QUANT8_SYMM_PER_CHANNEL
    extension_data: bytes | None = None  # data of an operand of an extension's type
    subgraph: int | None = None  # index of the referenced graph that a MODEL operand stands for
    extension_type: ExtensionTypeInformation | None = None  # of an operand of an extension's type

    @property
    def is_tensor(self) -> bool:
        """Return whether it has dimensions."""
        if self.extension_type is not None:
            return self.extension_type.is_tensor
        return OPERAND_TRAITS[OperandCode(self.type)].is_tensor

    @property
    def is_omitted(self) -> bool:
        """Return whether the operand stands for an optional input that is left out."""
        return self.lifetime is Lifetime.NO_VALUE

    @property
    def type_name(self) -> str:
        """The type for messages."""
        if is_extension(self.type):
            return f"extension type {self.type:#x}"
        try:
            return OperandCode(self.type).name
        except ValueError:
            return f"unknown type {self.type}"

    @property
    def element_shape(self) -> tuple[int, ...]:
        """Axes after the dimensions that one element takes in the core's tensor.

        Notes
        -----
        None but for extensions' elements of a size that no integer has, which are carried
        byte by byte: one axis of their size.
        """
        extension = self.extension_type
        if extension is None or extension.size_bytes in _CARRIERS:
            return ()
        return (extension.size_bytes,)

    @property
    def is_fully_known(self) -> bool:
        """Return whether it is a scalar, or a tensor whose dimensions are all known."""
        return not self.is_tensor or (bool(self.dimensions) and 0 not in self.dimensions)

    @property
    def size_bytes(self) -> int:
        """Bytes of all its elements; 0 where dimensions are not known."""
        if not self.is_fully_known:
            return 0
        return math.prod(self.dimensions) * self.element_size_bytes

    @property
    def element_size_bytes(self) -> int:
        """Bytes of one element."""
        if self.extension_type is not None:
            return self.extension_type.size_bytes
        return OPERAND_TRAITS[OperandCode(self.type)].size_bytes

    @property
    def shape(self) -> Shape | None:
        """Dimensions as the core has them: None where not known, or for an unknown rank."""
        if self.type == OperandCode.OEM_SCALAR:  # only its driver knows how long it is
            return (None if self.data is None else len(self.data),)
        if not self.is_tensor:
            return self.element_shape
        if not self.dimensions:
            return None
        return (*(dim or None for dim in self.dimensions), *self.element_shape)

    @property
    def data_type(self) -> DataType:
        """The core's type with the same elements."""
        if self.extension_type is not None:
            # Unsigned integers carry any bits unchanged; floats would not, as for signalling NaNs.
            return _CARRIERS.get(self.extension_type.size_bytes, DataType.UNSIGNED8)
        data_type = OPERAND_TRAITS[OperandCode(self.type)].data_type
        return DataType.UNSIGNED8 if data_type is None else data_type

    @property
    def quantization(self) -> Quantization | None:
        """Scales and zero point as the core has them."""
        if self.channel_quant is not None:
            return Quantization.per_axis(self.channel_quant.scales, self.channel_quant.channel_dim)
        if not self.scale:
            return None
        # Rounded to float32, which is what NNAPI stores: backends have to compute with that.
        return Quantization.per_tensor(float(np.float32(self.scale)), self.zero_point)

    @property
    def info(self) -> TensorInfo:
        """All that is known of the operand, as the core has it."""
        return TensorInfo(self.shape, self.data_type, self.quantization)

    @property
    def elements(self) -> Array | None:
        """Elements of a constant, of its shape; None for any other operand.

        Notes
        -----
        Boolean elements are false if 0, else true. An OEM scalar is any number of bytes.
        """
        if self.data is None:
            return None
        dtype = self.data_type.dtype
        # Over the bytes themselves; constants may be large, and shared memory is read where it
        # lies.
        stored = np.frombuffer(self.data, np.uint8 if dtype == np.bool_ else dtype)
        # Any byte but 0 is true in NNAPI; NumPy's bool is 0 or 1.
        if dtype == np.bool_:
            stored = stored != 0
        if self.type == OperandCode.OEM_SCALAR:
            return stored
        return stored.reshape((*self.dimensions, *self.element_shape))


_CARRIERS: Mapping[int, DataType] = {
    1: DataType.UNSIGNED8,
    2: DataType.UNSIGNED16,
    4: DataType.UNSIGNED32,
    8: DataType.UNSIGNED64,
}
"""The core's type that carries elements of an extension's type, by bytes per element."""


@dataclass(frozen=True, slots=True)
class OperationNode:
    """One operation of a model: its type, and its operands by index; HAL ``Operation``."""

    type: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A graph of a model: the main one, or one that control flow refers to."""

    operands: tuple[Operand, ...]
    operations: tuple[OperationNode, ...]  # in an order in which they can run
    # Indexes of operands.
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """A model with all that it refers to; HAL 1.3 ``Model``."""

    main: Subgraph
    referenced: tuple[Subgraph, ...] = ()  # what MODEL operands stand for, by index
    relaxed: bool = False  # whether float32 may be computed with the range and precision of float16
    extensions: Mapping[int, str] = field(default_factory=dict)
    """Name of each extension that is used, by prefix."""
