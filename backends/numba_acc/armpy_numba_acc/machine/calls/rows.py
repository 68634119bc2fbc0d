"""Calls of kernels that fold elements along axes: reductions, normalisations, softmax."""

from __future__ import annotations

from armpy.core.dataclass import dataclass
from armpy_numba_acc.machine.call import Call, Pointer


@dataclass(frozen=True, slots=True)
class Rescaling(Call):
    """Rescaling of reduced elements.

    Real sums are divided by `scale`, the bits of a float64; quantised ones less `offset` are
    multiplied by ``scale * 2**(shift - 31)``, and `zero_point` is added; means that are rounded
    down or towards 0 are divided by `offset`.
    """

    scale: int = 0
    offset: int = 0
    shift: int = 0
    zero_point: int = 0


@dataclass(frozen=True, slots=True)
class Reduce(Call):
    """Reduce along axes."""

    parameters = ("operation", "kind", "form")

    operation: str
    # Of the elements; "q8" and "q16" are requantised, "bf16" is added up and written as float32.
    kind: str
    form: str  # whether the elements that lie side by side stay, or are reduced
    source: Pointer
    target: Pointer
    # Tables of `num_kept` and `num_reduced` loops as for `MoveRuns`, which turn `num_items` and
    # `num_turns` times.
    kept: Pointer
    num_kept: int
    num_items: int
    reduced: Pointer
    num_reduced: int
    num_turns: int
    lines: int  # the innermost loop of the reduction: lines that are `pitch` bytes apart
    pitch: int
    inner: int  # elements that lie side by side; those that stay are taken `block` at a time
    block: int
    scratch: Pointer  # an accumulator for each element of a block per thread, 64 bytes at least
    rescaling: Rescaling


@dataclass(frozen=True, slots=True)
class ArgExtreme(Call):
    """Find the first maximum or minimum along an axis."""

    parameters = ("operation", "kind", "form")

    operation: str
    kind: str
    # "rows" needs an inner size of 1, "short" moreover bytes along the axis, no more of them than
    # there are in a vector.
    form: str
    source: Pointer
    target: Pointer
    outer: int  # sizes in front of the axis, along it, and after it
    axis: int
    inner: int
    block: int  # two int32 for each element of a block of the inner ones, per thread
    scratch: Pointer
    is_wide: int  # whether positions are int64, not int32


@dataclass(frozen=True, slots=True)
class Cumulate(Call):
    """Add or multiply up the `count` elements along an axis, and write every result on the way.

    `outers` stand in front of the axis, `inner` after it.
    """

    parameters = ("operation", "kind")

    operation: str  # "sum" or "product"
    kind: str
    source: Pointer
    target: Pointer
    outers: int
    count: int
    inner: int
    block: int  # those after the axis are taken so many at a time
    is_exclusive: int  # whether an element's own number is left out
    is_reversed: int  # whether to begin at the end


@dataclass(frozen=True, slots=True)
class WindowSums(Call):
    """Add up each float32 and its neighbours along an axis, or their squares."""

    parameters = ("squares",)

    squares: int  # whether elements are squared
    source: Pointer
    target: Pointer
    planes: int  # `length` elements of each plane
    length: int
    pitch: int  # neighbours are `pitch` elements apart, and no further than `radius` of them
    radius: int


@dataclass(frozen=True, slots=True)
class InstanceNormalization(Call):
    """Bring each channel of each float32 image to one mean and variance."""

    source: Pointer
    target: Pointer
    sums: Pointer  # room for `width` times two float64 per channel
    images: int
    pixels: int
    channels: int
    width: int  # pixels that are added up side by side; 1 if threads share the channels
    gamma: float
    beta: float
    epsilon: float


@dataclass(frozen=True, slots=True)
class LayerNormalization(Call):
    """Bring rows of float32 to variance 1, then multiply and add element by element."""

    parameters = ("form",)

    form: str  # whether the mean is taken off first
    source: Pointer
    target: Pointer
    gamma: Pointer  # `length` float32
    beta: Pointer
    rows: int
    length: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class L2Normalization(Call):
    """Divide rows of float32 by their Euclidean norms."""

    source: Pointer
    target: Pointer
    rows: int
    length: int
    least: float  # least sum of squares that is divided by the root of


@dataclass(frozen=True, slots=True)
class L2NormalizationBytes(Call):
    """Divide rows of bytes by their Euclidean norms, in fixed point, to steps of 1/128."""

    parameters = ("is_signed",)

    is_signed: int  # whether the output was int8, which is rounded otherwise
    source: Pointer
    target: Pointer
    rows: int
    length: int
    zero_point: int  # of the input; the output's is 128


@dataclass(frozen=True, slots=True)
class Softmax(Call):
    """Softmax of rows of float32, or its logarithm."""

    parameters = ("function",)

    function: str
    source: Pointer
    target: Pointer
    rows: int
    length: int
    factor: float  # beta


SOFTMAX_ROWS = 64
"""Rows of which `SoftmaxBytes` computes divisors at once."""

SOFTMAX_SCRATCH_BYTES = 256 + 3 * 4 * SOFTMAX_ROWS
"""What each thread of it needs: a table of bytes, and three int32 for each of these rows."""


@dataclass(frozen=True, slots=True)
class SoftmaxBytes(Call):
    """Softmax of rows of bytes, or its logarithm, in fixed point."""

    parameters = ("function", "written")

    function: str
    written: str  # how the output is stored
    source: Pointer
    target: Pointer
    rows: int
    length: int
    # 256 int32 by the difference to a row's largest byte: what is divided by the sum (or an
    # argument, whose logarithm is subtracted), and what is added up.
    values: Pointer
    summands: Pointer
    scratch: Pointer  # `SOFTMAX_SCRATCH_BYTES` of each thread
    radius: int = 0  # largest difference that has a logarithm, and what takes one to a difference
    multiplier: int = 0
    shift: int = 0


@dataclass(frozen=True, slots=True)
class SoftmaxI16(Call):
    """Softmax of rows of 16-bit elements, in fixed point."""

    source: Pointer
    target: Pointer
    rows: int
    length: int
    exponentials: Pointer  # tables of 513 samples of 16 bits
    reciprocals: Pointer
    multiplier: int  # take differences to steps of the exponentials' argument
    shift: int


@dataclass(frozen=True, slots=True)
class QuantizeU8(Call):
    """Quantise float32 to bytes."""

    source: Pointer
    target: Pointer
    count: int  # elements; a register of bytes or more
    zero_point: int  # of the unsigned output, whose bytes are changed by `flip` in the end
    flip: int
    to_even: int  # 1 if ties go to the even integer, 0 if away from zero
    scale: float  # `inverse` is 1 by the scale
    inverse: float
