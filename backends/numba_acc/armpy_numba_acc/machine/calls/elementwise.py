"""Calls of kernels that compute each element of their output from those in its place."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.core.dataclass import dataclass
from armpy_numba_acc.machine.call import Call, Pointer
from armpy_numba_acc.machine.formats import FORMAT_BYTES


@dataclass(frozen=True, slots=True)
class ElementwiseInput(Call):
    """An input of `Elementwise`, with bytes from a row to the next, and from an element."""

    address: Pointer = 0
    row: int = 0
    step: int = 0


@dataclass(frozen=True, slots=True)
class Elementwise(Call):
    """Compute an expression of elements, with broadcasting."""

    parameters = ("expression", "formats", "patterns")

    expression: str  # see `armpy_numba_acc.tiles.elementwise.expressions`
    formats: str  # how inputs and output are stored, with ``x`` in between
    # A letter per input: ``v`` if it has an element per output's along the innermost axis, ``s`` if
    # it has one for all.
    patterns: str
    first: ElementwiseInput
    second: ElementwiseInput
    third: ElementwiseInput
    output: Pointer
    output_step: int
    # How many elements lie next to each other, how many rows of them there are, and planes of rows.
    columns: int
    rows: int = 1
    planes: int = 1
    num_outer: int = 0  # how many axes the planes run over
    # These axes' sizes, followed by the pitches of each input along them, in bytes.
    outer: Pointer = 0
    numbers: tuple[float, ...] = ()  # the expression's parameters


def elementwise_in_order(
    expression: str, formats: Sequence[str], source: Pointer, output: Pointer, count: int
) -> Elementwise:
    """The call for elements of one input that lie next to each other, as their results do."""
    sizes = [FORMAT_BYTES[name] for name in formats]
    elements, none = ElementwiseInput(source, 0, sizes[0]), ElementwiseInput()
    inputs = elements, none, none
    return Elementwise(expression, "x".join(formats), "v", *inputs, output, sizes[-1], count)


@dataclass(frozen=True, slots=True)
class Flip(Call):
    """Flip the top bit of every byte: int8 elements as uint8 ones, and back."""

    source: Pointer
    target: Pointer
    size: int


@dataclass(frozen=True, slots=True)
class Lookup(Call):
    """Map integers by a table: `table` has an entry for each of their bit patterns."""

    parameters = ("index_bytes", "entry_bytes")

    index_bytes: int
    entry_bytes: int
    source: Pointer
    target: Pointer
    table: Pointer
    count: int


@dataclass(frozen=True, slots=True)
class ByteLines(Call):
    """Compute lines of bytes, with slopes and offsets for each column; stage after stage."""

    parameters = ("stages", "clamping")

    # A letter per stage: ``s`` if it is straight, ``b`` if bytes below a zero point have offsets of
    # their own.
    stages: str
    # A digit per stage: how many of its bounds matter, first the lower one. The last stage's upper
    # one is 255 with ``1``.
    clamping: str
    source: Pointer
    target: Pointer
    # float32 for each column: slopes of a stage, offsets below its zero point if it is bent,
    # offsets of others. They are read in whole vectors.
    constants: Pointer
    plane_bytes: int  # from one of these to the next
    columns: int
    rows: int
    numbers: tuple[float, ...] = ()  # zero point, lowest and highest byte of each stage
