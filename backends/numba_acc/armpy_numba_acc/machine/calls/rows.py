"""Calls of kernels that fold elements along axes: reductions, normalisations, softmax."""

from __future__ import annotations

from dataclasses import dataclass

from armpy_numba_acc.machine.call import Call, Pointer


@dataclass(frozen=True, slots=True)
class Rescaling(Call):
    """Rescaling of reduced elements.

    Notes
    -----
    Real sums are divided by `scale`, the bits of a float64; quantised ones less `offset` are
    multiplied by ``scale * 2**(shift - 31)``, and `zero_point` is added; means that are rounded
    down are divided by `offset`.
    """

    scale: int = 0
    offset: int = 0
    shift: int = 0
    zero_point: int = 0


@dataclass(frozen=True, slots=True)
class Reduce(Call):
    """Reduce along axes.

    Parameters
    ----------
    operation : {"sum", "product", "max", "min", "mean_down"}
    kind : {"f32", "bf16", "u8", "q8", "i16", "q16", "i32"}
        Of the elements; "q8" and "q16" are requantised, "bf16" is added up and written as float32.
    form : {"columns", "rows"}
        Whether the elements that lie side by side stay, or are reduced.
    kept, reduced : Pointer
        Tables of `num_kept` and `num_reduced` loops as for `MoveRuns`, which turn `num_items` and
        `num_turns` times.
    lines, pitch : int
        The innermost loop over what is reduced: lines that are `pitch` bytes apart.
    inner, block : int
        Elements that lie side by side; those that stay are taken `block` at a time.
    scratch : Pointer
        4 bytes for each element of a block per thread, 64 at least.
    """

    parameters = ("operation", "kind", "form")

    operation: str
    kind: str
    form: str
    source: Pointer
    target: Pointer
    kept: Pointer
    num_kept: int
    num_items: int
    reduced: Pointer
    num_reduced: int
    num_turns: int
    lines: int
    pitch: int
    inner: int
    block: int
    scratch: Pointer
    rescaling: Rescaling


@dataclass(frozen=True, slots=True)
class ArgExtreme(Call):
    """Find the first maximum or minimum along an axis.

    Parameters
    ----------
    operation : {"max", "min"}
    kind : {"f32", "u8", "i32"}
    form : {"columns", "rows", "short"}
        "rows" needs an inner size of 1, "short" moreover bytes along the axis, no more of them
        than there are in a vector.
    outer, axis, inner : int
        Sizes in front of the axis, along it, and behind it.
    block, scratch : int, Pointer
        Two int32 for each element of a block of the inner ones, per thread.
    is_wide : int
        Whether positions are int64, not int32.
    """

    parameters = ("operation", "kind", "form")

    operation: str
    kind: str
    form: str
    source: Pointer
    target: Pointer
    outer: int
    axis: int
    inner: int
    block: int
    scratch: Pointer
    is_wide: int


@dataclass(frozen=True, slots=True)
class WindowSums(Call):
    """Add up each float32 and its neighbours along an axis, or their squares.

    Parameters
    ----------
    squares : int
        Whether elements are squared.
    planes, length : int
        `length` elements of each plane.
    pitch, radius : int
        Neighbours are `pitch` elements apart, and no further than `radius` of them.
    """

    parameters = ("squares",)

    squares: int
    source: Pointer
    target: Pointer
    planes: int
    length: int
    pitch: int
    radius: int


@dataclass(frozen=True, slots=True)
class InstanceNormalization(Call):
    """Bring each channel of each float32 image to one mean and variance.

    Parameters
    ----------
    sums : Pointer
        Room for two float64 per channel.
    """

    source: Pointer
    target: Pointer
    sums: Pointer
    images: int
    pixels: int
    channels: int
    gamma: float
    beta: float
    epsilon: float


@dataclass(frozen=True, slots=True)
class LayerNormalization(Call):
    """Bring rows of float32 to variance 1, then multiply and add element by element.

    Parameters
    ----------
    form : {"mean", "root mean square"}
        Whether the mean is taken off first.
    gamma, beta : Pointer
        `length` float32.
    """

    parameters = ("form",)

    form: str
    source: Pointer
    target: Pointer
    gamma: Pointer
    beta: Pointer
    rows: int
    length: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class L2Normalization(Call):
    """Divide rows of float32 by their Euclidean norms.

    Parameters
    ----------
    least : float
        Least sum of squares that is divided by the root of.
    """

    source: Pointer
    target: Pointer
    rows: int
    length: int
    least: float


@dataclass(frozen=True, slots=True)
class L2NormalizationBytes(Call):
    """Divide rows of bytes by their Euclidean norms, in fixed point, to steps of 1/128.

    Parameters
    ----------
    is_signed : int
        Whether the output was int8, which is rounded otherwise.
    zero_point : int
        Of the input; the output's is 128.
    """

    parameters = ("is_signed",)

    is_signed: int
    source: Pointer
    target: Pointer
    rows: int
    length: int
    zero_point: int


@dataclass(frozen=True, slots=True)
class Softmax(Call):
    """Softmax of rows of float32, or its logarithm.

    Parameters
    ----------
    function : {"softmax", "log_softmax"}
    factor : float
        Beta.
    """

    parameters = ("function",)

    function: str
    source: Pointer
    target: Pointer
    rows: int
    length: int
    factor: float


@dataclass(frozen=True, slots=True)
class SoftmaxBytes(Call):
    """Softmax of rows of bytes, or its logarithm, in fixed point.

    Parameters
    ----------
    function : {"softmax", "log_softmax"}
    written : {"u8", "i16"}
        How the output is stored.
    values, summands : Pointer
        256 int32 by the difference to a row's largest byte: what is divided by the sum (or an
        argument, whose logarithm is subtracted), and what is added up.
    scratch : Pointer
        256 bytes of each thread.
    radius, multiplier, shift : int
        Largest difference that has a logarithm, and what takes one to a difference.
    """

    parameters = ("function", "written")

    function: str
    written: str
    source: Pointer
    target: Pointer
    rows: int
    length: int
    values: Pointer
    summands: Pointer
    scratch: Pointer
    radius: int = 0
    multiplier: int = 0
    shift: int = 0


@dataclass(frozen=True, slots=True)
class SoftmaxI16(Call):
    """Softmax of rows of 16-bit elements, in fixed point.

    Parameters
    ----------
    exponentials, reciprocals : Pointer
        Tables of 513 samples of 16 bits.
    multiplier, shift : int
        Take differences to steps of the exponentials' argument.
    """

    source: Pointer
    target: Pointer
    rows: int
    length: int
    exponentials: Pointer
    reciprocals: Pointer
    multiplier: int
    shift: int


@dataclass(frozen=True, slots=True)
class QuantizeU8(Call):
    """Quantise float32 to bytes.

    Parameters
    ----------
    count : int
        Elements; a register of bytes or more.
    zero_point, flip : int
        Of the unsigned output, whose bytes are changed by `flip` in the end.
    to_even : int
        1 if ties go to the even integer, 0 if away from zero.
    scale, inverse : float
        `inverse` is 1 by the scale.
    """

    source: Pointer
    target: Pointer
    count: int
    zero_point: int
    flip: int
    to_even: int
    scale: float
    inverse: float
