"""Description of a tensor: shape, data type, quantisation, constness."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.types import DataType

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from armpy.core.quantization import Scaling

_Element = TypeVar("_Element", bound="np.generic")

Dimension: TypeAlias = int | None
"""Size along one axis; None is not known yet."""

Shape: TypeAlias = tuple[Dimension, ...]
"""Dimensions, outermost first; ``()`` is a scalar."""

MAX_RANK = 8
"""Highest rank of a tensor."""

_LARGEST_COUNT = 2**59
"""NumPy counts the bytes of an empty array as if its dimensions of 0 were 1."""


@dataclass(frozen=True, slots=True)
class Quantization:
    """Quantisation of stored integers: ``scale * (stored - zero_point)`` is the real number.

    Raises
    ------
    InvalidArgumentError
        If a scale is not positive and finite, or the counts do not fit each other. A
        per-axis scale may be 0: converters write that for channels without a weight.
    """

    scales: tuple[float, ...]
    """One scale, or one per index along `axis`."""
    zero_points: tuple[int, ...] = (0,)
    """One zero point per scale."""
    axis: int | None = None
    """Axis of the scales; None if there is one for the whole tensor."""

    def __post_init__(self) -> None:
        scales, zero_points, axis = self.scales, self.zero_points, self.axis
        # Tuples only: a list could change under a frozen object, and has no hash.
        if not isinstance(scales, tuple) or not isinstance(zero_points, tuple):
            raise InvalidArgumentError(
                "scales and zero points are not given as tuples",
                where="Quantization",
                actual=f"{scales!r} and {zero_points!r}",
                fix="Write Quantization.per_tensor(scale, zero_point) for a single scale",
            )
        if len(zero_points) != len(scales):
            raise InvalidArgumentError(
                "the numbers of scales and zero points differ",
                where="Quantization",
                expected=f"{len(scales)} zero points",
                actual=str(len(zero_points)),
            )
        if not scales or (axis is None and len(scales) != 1):
            raise InvalidArgumentError(
                "several scales need an axis, one scale at least is needed",
                where="Quantization",
                actual=f"{len(scales)} scales and axis {axis}",
            )
        # Above 0, except for a channel of zeros, whose scale may be 0.
        lowest = math.ulp(0.0) if axis is None else 0.0
        for scale in scales:
            if not lowest <= scale < math.inf:
                raise InvalidArgumentError(
                    "a scale is not positive and finite",
                    where="Quantization",
                    expected="a positive finite number"
                    + " (or 0, for a channel of zeros)" * (axis is not None),
                    actual=repr(scale),
                    fix="Calculate it as (highest value - lowest value) / number of steps",
                )

    @classmethod
    def per_tensor(cls, scale: float, zero_point: int = 0) -> Quantization:
        """One scale and zero point for the whole tensor."""
        return cls((float(scale),), (int(zero_point),))

    @classmethod
    def per_axis(cls, scales: Sequence[float], axis: int) -> Quantization:
        """One scale per index along `axis`, all zero points 0."""
        return cls(tuple(float(s) for s in scales), (0,) * len(scales), axis)

    def quantize(self, real: npt.ArrayLike, data_type: DataType) -> npt.NDArray[np.integer[Any]]:
        """Store real numbers as integers.

        Parameters
        ----------
        data_type : DataType
            Type of the integers.

        Returns
        -------
        ndarray, dtype of `data_type`, shape of `real`
            ``round(real / scale) + zero point``, saturated.

        Raises
        ------
        InvalidArgumentError
            If the type stores no integers, `real` has not as many channels as there are scales, or
            is not finite or no numbers.

        Notes
        -----
        As TensorFlow Lite: the division is one of float32, and halves are rounded away from zero.
        Of a scale of 0, everything is the zero point.

        References
        ----------
        TFLite AffineQuantize, PerChannelQuantize.
        """
        if not isinstance(data_type, DataType) or data_type.dtype.kind not in "iu":
            raise InvalidArgumentError(
                "the data type stores no integers",
                where="Quantization",
                expected="one such as DataType.QASYMM_S8",
                actual=data_type.name if isinstance(data_type, DataType) else repr(data_type),
            )
        return self._scaling().quantize(real, data_type.integer_range, data_type.dtype)

    def dequantize(self, stored: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """The real numbers that integers stand for: ``scale * (stored - zero point)``.

        Raises
        ------
        InvalidArgumentError
            If `stored` are not integers, or has not as many channels as there are scales.

        References
        ----------
        TFLite Dequantize, PerChannelDequantize.
        """
        return self._scaling().dequantize(stored)

    def _scaling(self) -> Scaling:
        """The parameters, with which NumPy computes."""
        from armpy.core.quantization import Scaling  # noqa: PLC0415 - it needs NumPy

        return Scaling(self.scales, self.zero_points, self.axis)

    @property
    def scale(self) -> float:
        """The scale of a per-tensor quantisation (the first one otherwise)."""
        return self.scales[0]

    @property
    def zero_point(self) -> int:
        """The zero point of a per-tensor quantisation (the first one otherwise)."""
        return self.zero_points[0]


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """All that is known about a tensor without its elements.

    Raises
    ------
    InvalidArgumentError
        If a dimension is not an integer or negative, or the rank is above `MAX_RANK`.

    References
    ----------
    Arm NN ``TensorInfo``; NNAPI operand types, whose dimension 0 is None here.
    """

    shape: Shape | None
    """Dimensions, outermost first; None for an unknown one, or for all if the rank is unknown.
    """
    data_type: DataType
    quantization: Quantization | None = None
    """Needed for the quantised types; allowed for integers such as a quantised bias."""
    is_constant: bool = False
    """Whether the elements are part of the network."""

    def __post_init__(self) -> None:
        if not isinstance(self.data_type, DataType):
            raise InvalidArgumentError(
                "the data type is not a DataType",
                where="TensorInfo",
                expected="for example DataType.FLOAT32",
                actual=repr(self.data_type),
                fix="Use a member of armpy.DataType",
            )
        shape = self.shape
        if shape is None:
            return
        # By exact type, which is quick, as there are many of these; what else fits is converted.
        if type(shape) is not tuple or not _DIMENSION_TYPES.issuperset(map(type, shape)):
            shape = _as_shape(shape)
            object.__setattr__(self, "shape", shape)
        if len(shape) > MAX_RANK:
            raise InvalidArgumentError(
                "the rank is too high",
                where="TensorInfo",
                expected=f"at most {MAX_RANK} dimensions",
                actual=str(len(shape)),
            )
        for dim in shape:
            if dim is not None and dim < 0:
                raise InvalidArgumentError(
                    "a dimension is negative",
                    where="TensorInfo",
                    expected="sizes of 0 or more, or None where not known",
                    actual=str(shape),
                    fix="Write None for an unknown size",
                )

    @property
    def rank(self) -> int | None:
        """Number of dimensions; None if not known."""
        return None if self.shape is None else len(self.shape)

    @property
    def is_fully_shaped(self) -> bool:
        """Return whether the rank and every dimension are known."""
        return self.shape is not None and None not in self.shape

    @property
    def is_addressable(self) -> bool:
        """True if an array of the tensor's size can be addressed; its shape must be fully known."""
        return math.prod(dim or 1 for dim in self.known_shape) <= _LARGEST_COUNT

    @property
    def known_shape(self) -> tuple[int, ...]:
        """The shape of a fully shaped tensor.

        Raises
        ------
        InvalidArgumentError
            If a dimension or the rank is not known.
        """
        if self.shape is None or None in self.shape:
            raise InvalidArgumentError(
                "a shape is needed that is not known yet",
                where="TensorInfo",
                actual=format_shape(self.shape),
            )
        return self.shape  # type: ignore[return-value]  # no None is left

    @property
    def num_elements(self) -> int:
        """Number of elements of a fully shaped tensor."""
        return math.prod(self.known_shape)

    @property
    def size_bytes(self) -> int:
        """Bytes of a fully shaped tensor's elements, without padding."""
        return self.num_elements * self.data_type.size_bytes

    @property
    def has_per_axis_quantization(self) -> bool:
        """Return whether scales differ along an axis."""
        return self.quantization is not None and self.quantization.axis is not None

    @property
    def scale(self) -> float:
        """The per-tensor scale; 1.0 where there is no quantisation."""
        return 1.0 if self.quantization is None else self.quantization.scale

    @property
    def zero_point(self) -> int:
        """The per-tensor zero point; 0 where there is no quantisation."""
        return 0 if self.quantization is None else self.quantization.zero_point

    def with_shape(self, shape: Shape | None) -> TensorInfo:
        """The same with another shape."""
        # The same object: it is frozen, and most shapes stay what they are.
        if same_shape(shape, self.shape):
            return self
        return TensorInfo(shape, self.data_type, self.quantization, self.is_constant)

    def __str__(self) -> str:
        text = f"{self.data_type.name} {format_shape(self.shape)}"
        if self.quantization is not None:
            scales = "per-axis" if self.has_per_axis_quantization else f"{self.scale:g}"
            text += f", scale {scales}, zero point {self.zero_point}"
        return text


_DIMENSION_TYPES = frozenset((int, type(None)))


def _stays(dim: object) -> bool:
    """Return whether a dimension is not to be converted: a traced size would be fixed by that."""
    from armpy.core.symbolic import Size  # noqa: PLC0415

    return dim is None or isinstance(dim, Size)


def _as_shape(dims: object) -> Shape:
    """A shape of plain integers made from what stands for one, NumPy's integers for example."""
    try:
        items: Shape = tuple(dims)  # type: ignore[arg-type]  # a TypeError is waited for
        return tuple([dim if _stays(dim) else operator.index(dim) for dim in items])  # type: ignore[arg-type]  # as above
    except TypeError as error:
        raise InvalidArgumentError(
            "the shape is not a sequence of integers",
            where="TensorInfo",
            expected="a sequence of integers, with None where not known",
            actual=repr(dims),
        ) from error


def read_only(array: npt.NDArray[_Element]) -> npt.NDArray[_Element]:
    """Make a view of an array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


def format_shape(shape: Shape | None) -> str:
    """Text of a shape with ``?`` for unknown sizes: ``(1, ?, 3)``, ``(?...)``."""
    if shape is None:
        return "(?...)"
    inner = ", ".join("?" if dim is None else str(dim) for dim in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def check_quantization(info: TensorInfo, where: str) -> None:
    """Check that a tensor's zero points are integers that its type stores.

    Raises
    ------
    InvalidArgumentError
        If one is not, or a quantised type has no quantisation: `where` names the tensor.
    """
    data_type, quantization = info.data_type, info.quantization
    if quantization is None and data_type.is_quantized:
        raise InvalidArgumentError(
            f"the type {data_type.name} needs a scale",
            where=where,
            fix="Set TensorInfo.quantization, or use the plain integer type",
        )
    if quantization is None or data_type.dtype.kind not in "iu":
        return
    is_zero = quantization.axis is not None and not data_type.name.startswith("QASYMM")
    lowest, highest = (0, 0) if is_zero else data_type.integer_range
    for point in quantization.zero_points:
        if not lowest <= point <= highest:
            raise InvalidArgumentError(
                "a zero point is out of range",
                where=where,
                expected="0, as scales run along an axis" if is_zero else f"{lowest} to {highest}",
                actual=f"{point} of {data_type.name}",
            )


def same_shape(one: Shape | None, other: Shape | None) -> bool:
    """Return whether shapes are equal for all traced sizes: each is an object of its own."""
    if one is None or other is None or len(one) != len(other):
        return one is other
    pairs = zip(one, other, strict=True)
    return all(a is b or (type(a) is type(b) is int and a == b) for a, b in pairs)


def shapes_agree(one: Shape | None, other: Shape | None) -> bool:
    """Return whether two partly known shapes can be those of one tensor."""
    if one is None or other is None:
        return True
    if len(one) != len(other):
        return False
    # Each open input of a call comes by here: `all` takes twice as long.
    for a, b in zip(one, other, strict=True):  # noqa: SIM110 - as above
        if not (a is None or b is None or a == b):
            return False
    return True


def merge_shapes(declared: Shape | None, inferred: Shape | None) -> Shape | None:
    """Combine two partly known shapes of one tensor.

    Returns
    -------
    tuple of (int or None), or None
        Each dimension from whichever side knows it.

    Raises
    ------
    InvalidArgumentError
        If both know a dimension or the rank and they differ.
    """
    if declared is None or declared == inferred:
        return inferred
    if inferred is None:
        return declared
    if shapes_agree(declared, inferred):
        pairs = zip(declared, inferred, strict=True)
        return tuple(b if a is None else a for a, b in pairs)
    raise InvalidArgumentError(
        "the declared shape is not the one that follows from the inputs",
        expected=format_shape(inferred),
        actual=format_shape(declared),
    )


def check_shape_fits(name: str, declared: Shape | None, given: Shape) -> None:
    """Check a concrete shape against one with unknown dimensions.

    Raises
    ------
    InvalidArgumentError
        If they do not fit; the text names the tensor.
    """
    if declared != given and not shapes_agree(declared, given):
        raise InvalidArgumentError(
            "the shape does not match",
            where=f"input '{name}'",
            expected=format_shape(declared),
            actual=format_shape(given),
            fix="Give an array or a shape as expected (? is any size); in Python, Model.reshape "
            "makes a model for other shapes",
        )


def chosen_shape(name: str, declared: Shape | None, given: Iterable[int]) -> tuple[int, ...]:
    """A shape that an application has chosen for an input, checked.

    Raises
    ------
    InvalidArgumentError
        If it leaves a dimension open, is not a sequence of sizes, or does not fit.
    """
    try:
        shape = tuple(operator.index(size) for size in given)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            "the shape is not a sequence of whole numbers",
            where=f"input '{name}'",
            expected="a sequence of sizes of 0 or more",
            actual=repr(given),
            fix="Give a size for each dimension: a model is prepared for one shape at a time",
        ) from error
    if min(shape, default=0) < 0:
        raise InvalidArgumentError(
            "a size of the shape is negative",
            where=f"input '{name}'",
            expected="a sequence of sizes of 0 or more",
            actual=repr(given),
        )
    check_shape_fits(name, declared, shape)
    return shape
