"""The engine of a vector times a matrix, whose weights are read once, as one stream or as a few.

Notes
-----
Weights are laid out by columns, a vector's lanes side by side for each step (an element of the
input, or four bytes, that is the same in every lane), or by rows: one output's weights after each
other, and every lane adds up products of its own until they are summed in the end. The second way
suits few outputs of integers; floats are added up in the order of their products with many rows.

`VectorProducts` define how operands are multiplied, a `VectorFinish` how sums are converted; each
kernel names its record and its class of either kind, no more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar

from armpy_numba_acc.llvm.calls import CallFields, reader
from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.llvm.control import loop
from armpy_numba_acc.llvm.primitives import Definition, defined, linked
from armpy_numba_acc.llvm.threads.sharing import share_vectors
from armpy_numba_acc.llvm.values import Code, CodeValue, Kind, smaller, suffix, vector
from armpy_numba_acc.machine.calls.vectors import VectorCall, VectorMatrix
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.vector_matrix import PANEL
from armpy_numba_acc.tiles.products.engine import rows_in_line

TOGETHER = 4
"""Rows of weights that are read side by side; also, steps of a column's vector, or vectors whose
sums are ordered, so that sums do not wait for each other."""

_BEGIN, _PANEL, _VECTOR = "armpy_vector_begin", "armpy_vector_panel", "armpy_vector_single"

_begin = linked(_BEGIN, 1, returns=True)
_SOME = "armpy_vector_some"
_compute_panel, _compute_vector, _compute_some = (
    linked(name, 3) for name in (_PANEL, _VECTOR, _SOME)
)

_read = reader(VectorMatrix)


class VectorProducts(ABC):
    """Products of a vector's elements and weights, and how they are added up.

    Parameters
    ----------
    made_for : VectorMatrixF32 or VectorMatrixU8
        Of which only the parameters matter.

    Attributes
    ----------
    kind : Kind
        Of a vector of sums.
    bytes_per_vector : int
        Of the weights that it takes in a step.
    is_ordered : bool
        Whether sums depend on their order: it is that of the steps then, as of products with
        many rows, so that a vector has the same result as one of them.
    """

    element: ClassVar[Kind]
    is_ordered: ClassVar[bool] = False
    step_bytes: ClassVar[int] = 4

    def __init__(self, isa: Isa, made_for: VectorCall, call: CallFields) -> None:
        self.isa, self.call = isa, call
        self.kind = vector(self.element, isa.lanes)
        self.bytes_per_vector = isa.vector_bytes

    @abstractmethod
    def spread(self, place: CodeValue) -> Any:
        """A step's elements in every lane, in whatever form `add` takes."""

    def elements(self, place: CodeValue) -> Any:
        """A step's elements in the first lane, those of the following steps in the next ones.

        For weights by rows alone, as `last_elements`.
        """
        raise NotImplementedError

    def last_elements(self, place: CodeValue, count: CodeValue) -> Any:
        """The same of the last `count` steps: weights after them are 0."""
        raise NotImplementedError

    @abstractmethod
    def weights(self, line: CodeValue, j: int) -> Any:
        """Vector `j` of a line."""

    @abstractmethod
    def add(self, total: CodeValue, elements: Any, weights: Any) -> CodeValue:
        """Sums with products added."""

    def total(self, sums: CodeValue) -> CodeValue:
        """Sum of all lanes, which are integers."""
        return sums.code.call(f"llvm.vector.reduce.add.{suffix(sums.kind)}", sums.element, sums)


class VectorFinish(ABC):
    """End of sums: the values added to them, and their conversion to elements.

    Parameters
    ----------
    made_for : VectorMatrixF32 or VectorMatrixU8
        Of which only the parameters matter.
    """

    def __init__(self, isa: Isa, made_for: VectorCall, call: CallFields) -> None:
        self.isa, self.made_for, self.call = isa, made_for, call

    @classmethod
    def definitions(cls, isa: Isa, made_for: VectorCall) -> tuple[Definition, ...]:
        """Functions that are called besides."""
        return ()

    def begin(self) -> CodeValue:
        """A number that each thread works out once."""
        columns: CodeValue = self.call.matrix.columns
        return columns.like(0)

    @abstractmethod
    def write(
        self,
        column: CodeValue,
        totals: Sequence[CodeValue],
        begun: CodeValue,
        count: CodeValue | None,
    ) -> None:
        """Convert neighbouring vectors of sums to elements and store them.

        Parameters
        ----------
        column
            Number of the first column.
        begun
            What `begin` has given.
        count
            Columns that are wanted of one vector, maybe more than it has; None for all.
        """


def vector_kernel(
    isa: Isa,
    made_for: VectorCall,
    products: type[VectorProducts],
    finish: type[VectorFinish],
) -> LinkedKernel:
    """Make the kernel for a record of which only the parameters matter.

    Products bound by reading weights take as long as the weights: no zeros fill columns but those
    of one vector, and threads share whole panels.
    """
    record, lanes = type(made_for), isa.lanes
    is_ordered = products.is_ordered

    def begin(code: Code, args: CodeValue) -> CodeValue:
        return finish(isa, made_for, CallFields(record, args)).begin()

    def panel(code: Code, args: CodeValue, number: CodeValue, begun: CodeValue) -> None:
        call = CallFields(record, args)
        totals = _panel_sums(*_columns(products(isa, made_for, call), call.matrix, number, PANEL))
        finish(isa, made_for, call).write(number * lanes, totals, begun, None)

    def some(code: Code, args: CodeValue, number: CodeValue, begun: CodeValue) -> None:
        call = CallFields(record, args)
        method = products(isa, made_for, call)
        totals = _sums_side_by_side(method, call.matrix, number)
        finish(isa, made_for, call).write(number * lanes, totals, begun, None)

    def single(code: Code, args: CodeValue, number: CodeValue, begun: CodeValue) -> None:
        call = CallFields(record, args)
        method, column = products(isa, made_for, call), number * lanes
        count = call.matrix.columns - column
        if made_for.layout == "rows":
            total = _sums_of_rows(method, call.matrix, column, smaller(count, lanes))
        elif is_ordered:
            (total,) = _panel_sums(*_columns(method, call.matrix, number, 1))
        else:
            total = _vector_sums(*_columns(method, call.matrix, number, 1))
        finish(isa, made_for, call).write(column, [total], begun, count)

    definitions = [
        *finish.definitions(isa, made_for),
        Definition(_BEGIN, 1, begin, returns=True),
        Definition(_VECTOR, 3, single),
    ]
    if made_for.layout == "rows":
        return LinkedKernel(_walk(lanes, 1, 1), defined(*definitions))
    if is_ordered:
        definitions.append(Definition(_SOME, 3, some))
        return LinkedKernel(_walk(lanes, 1, TOGETHER), defined(*definitions))
    definitions.append(Definition(_PANEL, 3, panel))
    return LinkedKernel(_walk(lanes, PANEL, 1), defined(*definitions))


@cache
def _walk(lanes: int, panel: int, several: int) -> Callable[[int, int, int], None]:
    """The walk over columns, as many vectors at once as a panel has, then `several`, then one."""

    def vector_matrix(args: int, shares: int, num_shares: int) -> None:
        columns = _read(args).columns
        begun = _begin(args)
        number, last = share_vectors((columns + lanes - 1) // lanes, panel, shares, num_shares)
        whole = min(last, columns // lanes)
        while number < last:
            if panel > 1 and number + panel <= whole:
                _compute_panel(args, number, begun)
                number += panel
            elif several > 1 and number + several <= whole:
                _compute_some(args, number, begun)
                number += several
            else:
                _compute_vector(args, number, begun)
                number += 1

    return vector_matrix


def _columns(
    products: VectorProducts, matrix: CallFields, number: CodeValue, vectors: int
) -> tuple[VectorProducts, list[CodeValue], CodeValue, CodeValue, CodeValue]:
    """Return the operands of the sums of some vectors' columns.

    Returns
    -------
    products : VectorProducts
    first : list of CodeValue
        The bias of each vector.
    source, steps, lines : CodeValue
        Address of the input; number of steps; address of the weights.
    """
    head = matrix.weights + number * matrix.pitch
    first = [head.load(products.kind, j) for j in range(vectors)]
    lines = head + vectors * products.isa.vector_bytes
    return products, first, matrix.source, matrix.steps, lines


def _panel_sums(
    products: VectorProducts,
    first: list[CodeValue],
    source: CodeValue,
    steps: CodeValue,
    lines: CodeValue,
) -> list[CodeValue]:
    """Sums of the columns of some vectors side by side; parameters as of `_columns`."""
    line = len(first) * products.bytes_per_vector

    def step(number: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
        elements = products.spread(source + number * products.step_bytes)
        at_line = lines + number * line
        return [
            products.add(total, elements, products.weights(at_line, j))
            for j, total in enumerate(totals)
        ]

    return loop(source.code, steps, first, step)


def _sums_side_by_side(
    products: VectorProducts, matrix: CallFields, number: CodeValue
) -> list[CodeValue]:
    """Sums of `TOGETHER` vectors of columns, each with weights of its own after its bias."""
    heads = [matrix.weights + (number + j) * matrix.pitch for j in range(TOGETHER)]
    lines = [head + products.isa.vector_bytes for head in heads]

    def step(number: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
        elements = products.spread(matrix.source + number * products.step_bytes)
        offset = number * products.bytes_per_vector
        return [
            products.add(total, elements, products.weights(line + offset, 0))
            for total, line in zip(totals, lines, strict=True)
        ]

    first = [head.load(products.kind) for head in heads]
    return loop(number.code, matrix.steps, first, step)


def _vector_sums(
    products: VectorProducts,
    first: list[CodeValue],
    source: CodeValue,
    steps: CodeValue,
    lines: CodeValue,
) -> CodeValue:
    """Sums of the columns of one vector; parameters as of `_columns`."""
    zero = source.code.constant(products.kind)
    rounds = steps.shifted_right(TOGETHER.bit_length() - 1)

    def step(number: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
        at = source + number * (TOGETHER * products.step_bytes)
        at_line = lines + number * (TOGETHER * products.bytes_per_vector)
        return [
            products.add(
                total,
                products.spread(at + k * products.step_bytes),
                products.weights(at_line, k),
            )
            for k, total in enumerate(totals)
        ]

    totals = loop(source.code, rounds, [*first, *[zero] * (TOGETHER - 1)], step)
    done = rounds * TOGETHER
    source = source + done * products.step_bytes
    lines = lines + done * products.bytes_per_vector
    totals[:1] = _panel_sums(products, totals[:1], source, steps - done, lines)
    while len(totals) > 1:
        totals = [x + y for x, y in zip(totals[::2], totals[1::2], strict=True)]
    return totals[0]


def _sums_of_rows(
    products: VectorProducts, matrix: CallFields, column: CodeValue, count: CodeValue
) -> CodeValue:
    """Sums of a vector of outputs, of which `count` are wanted, whose weights are rows."""
    code = count.code
    pitch: CodeValue = matrix.pitch
    bias: CodeValue = (matrix.bias + column * 4).load(products.kind)
    source, steps, first = matrix.source, matrix.steps, matrix.weights + column * pitch
    room = code.stack(products.kind)

    def some(row: CodeValue, carried: list[CodeValue]) -> list[CodeValue]:
        """As many as are read side by side."""
        places = rows_in_line(first + row * pitch, pitch, count - row, TOGETHER)
        totals = _row_sums(products, source, steps, places)
        for number, total in enumerate(totals):
            (room + row * 4).store(products.total(total), number)
        return carried

    loop(code, count, [], some, by=TOGETHER)
    return room.load(products.kind) + bias


def _row_sums(
    products: VectorProducts, source: CodeValue, steps: CodeValue, rows: list[CodeValue]
) -> list[CodeValue]:
    """Sums of some outputs, lane by lane; `rows` are the addresses of their weights."""
    lanes, code = products.isa.lanes, source.code
    whole = (steps - 1) / lanes

    def add(number: CodeValue, totals: list[CodeValue], elements: Any) -> list[CodeValue]:
        offset = number * products.bytes_per_vector
        return [
            products.add(total, elements, products.weights(row + offset, 0))
            for row, total in zip(rows, totals, strict=True)
        ]

    def place(number: CodeValue) -> CodeValue:
        return source + number * (lanes * products.step_bytes)

    def step(number: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
        return add(number, totals, products.elements(place(number)))

    totals = loop(code, whole, [code.constant(products.kind)] * len(rows), step)
    rest = steps - whole * lanes
    return add(whole, totals, products.last_elements(place(whole), rest))
