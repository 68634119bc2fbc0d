"""Einsum: sums of products, as transposed matrix products."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, Sequence

from armpy.core.dataclass import dataclass
from armpy.graph import Value
from armpy.ops.elementwise import BinaryOperation
from armpy.ops.reduction import ReduceOperation
from armpy.ops.strided_slicing import StridedSlice
from armpy_onnx.blocks import binary, reduced, reshaped, transposed
from armpy_onnx.node import Node, Operator, OperatorTable
from armpy_onnx.operators.matrices import matrix_product


@dataclass(frozen=True, eq=False, slots=True)
class _EinsumTerm:
    """A tensor with a letter per axis."""

    value: Value
    letters: str


def _einsum(node: Node) -> Value:
    terms, output = _terms(node)
    sizes = _sizes(node, terms)
    for letter in output:
        if letter not in sizes:
            raise node.error("no input has an axis of the output", actual=letter)
    terms = [_without_ones(node, _with_diagonals(node, term), sizes) for term in terms]
    total = terms[0]
    for number, term in enumerate(terms[1:], 1):
        needed = {*output, *(letter for other in terms[number + 1 :] for letter in other.letters)}
        total = _product(node, total, term, needed)
    total = _summed(node, total, set(output))
    # An axis that all inputs repeat is there once, of size 1.
    missing = "".join(letter for letter in output if letter not in total.letters)
    shape = (*total.value.info.known_shape, *(1,) * len(missing))
    value, letters = reshaped(node, total.value, shape), total.letters + missing
    return transposed(node, value, [letters.index(letter) for letter in output])


def _terms(node: Node) -> tuple[list[_EinsumTerm], str]:
    """The inputs with their letters, and those of the output; dots have become letters."""
    equation = node.text("equation").replace(" ", "")
    left, arrow, output = equation.partition("->")
    parts = left.split(",")
    if len(parts) != len(node.values) or len(node.values) != len(node.inputs):
        raise node.error(
            "the equation has another number of terms",
            expected=f"{len(node.inputs)} terms",
            actual=equation,
        )
    used = set(equation)
    spare = [letter for letter in string.ascii_letters + string.digits if letter not in used]
    longest = 0
    terms = []
    for index, part in enumerate(parts):
        rank, named = node.rank(index), part.replace("...", "", 1)
        dots = rank - len(named)
        if not (named.isalpha() or not named) or dots < 0 or (dots and "..." not in part):
            raise node.error(
                f"term {index} does not have one letter per axis of its input",
                expected=f"rank {rank}",
                actual=equation,
            )
        longest = max(longest, dots)
        terms.append(_EinsumTerm(node.value(index), part.replace("...", _dots(spare, dots), 1)))
    if not arrow:
        letters = left.replace(",", "").replace("...", "")
        output = "..." + "".join(
            sorted(letter for letter in set(letters) if letters.count(letter) < 2)
        )
    output = output.replace("...", _dots(spare, longest), 1)
    if len(set(output)) < len(output):
        raise node.error("the output's term repeats a letter", actual=equation)
    if output and not output.isalnum():
        raise node.error("the output's term has other characters than letters", actual=equation)
    return terms, output


def _dots(spare: Sequence[str], count: int) -> str:
    """Letters for axes that three dots stand for; the last axes of all terms have the same."""
    return "".join(reversed(spare[:count]))


def _sizes(node: Node, terms: Sequence[_EinsumTerm]) -> Mapping[str, int]:
    sizes: dict[str, int] = {}
    for term in terms:
        for letter, size in zip(term.letters, term.value.info.known_shape, strict=True):
            known = sizes.get(letter, 1)
            if 1 not in (known, size) and known != size:
                raise node.error(
                    f"the axis '{letter}' has two sizes", expected=str(known), actual=size
                )
            sizes[letter] = size if known == 1 else known
    return sizes


def _with_diagonals(node: Node, term: _EinsumTerm) -> _EinsumTerm:
    """A term in which each letter is there once."""
    value, letters = term.value, term.letters
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            first, second = [at for at, other in enumerate(letters) if other == letter][:2]
            order = [at for at in range(len(letters)) if at not in (first, second)]
            value = transposed(node, value, (*order, first, second))
            *rest, rows, columns = value.info.known_shape
            if rows != columns:
                raise node.error(
                    f"the axis '{letter}' has two sizes", expected=str(rows), actual=columns
                )
            flat = reshaped(node, value, (*rest, rows * columns))
            if rows > 1:
                rank = len(rest) + 1
                step = StridedSlice(
                    (0,) * rank, flat.info.known_shape, (*(1,) * len(rest), rows + 1)
                )
                flat = node.layer(step, flat)
            value, letters = flat, "".join(letters[at] for at in order) + letter
    return _EinsumTerm(value, letters)


def _without_ones(node: Node, term: _EinsumTerm, sizes: Mapping[str, int]) -> _EinsumTerm:
    """A term without axes of size 1 along which it is repeated."""
    shape = term.value.info.known_shape
    places = [at for at, letter in enumerate(term.letters) if shape[at] == sizes[letter]]
    value = reshaped(node, term.value, [shape[at] for at in places])
    return _EinsumTerm(value, "".join(term.letters[at] for at in places))


def _summed(node: Node, term: _EinsumTerm, letters: set[str]) -> _EinsumTerm:
    """A term summed along the axes that nothing else needs."""
    axes = [at for at, letter in enumerate(term.letters) if letter not in letters]
    if not axes:
        return term
    value = reduced(node, ReduceOperation.SUM, term.value, axes, keep_dims=False)
    return _EinsumTerm(value, "".join(letter for letter in term.letters if letter in letters))


def _product(node: Node, x: _EinsumTerm, y: _EinsumTerm, needed: set[str]) -> _EinsumTerm:
    """The product of two terms, summed along what only they have."""
    x = _summed(node, x, needed | set(y.letters))
    y = _summed(node, y, needed | set(x.letters))
    shared = [letter for letter in x.letters if letter in y.letters]
    batch = "".join(letter for letter in shared if letter in needed)
    depth = "".join(letter for letter in shared if letter not in needed)
    rows = "".join(letter for letter in x.letters if letter not in shared)
    columns = "".join(letter for letter in y.letters if letter not in shared)
    sizes = {
        letter: size
        for term in (x, y)
        for letter, size in zip(term.letters, term.value.info.known_shape, strict=True)
    }

    def count(letters: str) -> int:
        return math.prod(sizes[letter] for letter in letters)

    batches = (count(batch),) if batch else ()
    left, is_left_swapped = _matrices(node, x, batch, rows, depth)
    right, is_right_swapped = _matrices(node, y, batch, depth, columns)
    if depth:
        product = matrix_product(node, left, right, is_left_swapped, is_right_swapped)
    else:
        left = reshaped(node, left, (*batches, count(rows), 1))
        right = reshaped(node, right, (*batches, 1, count(columns)))
        product = binary(node, BinaryOperation.MUL, left, right)
    letters = batch + rows + columns
    return _EinsumTerm(reshaped(node, product, [sizes[letter] for letter in letters]), letters)


def _matrices(
    node: Node, term: _EinsumTerm, batch: str, rows: str, columns: str
) -> tuple[Value, bool]:
    """A term as matrices, and whether these have rows and columns swapped."""
    is_swapped = term.letters == batch + columns + rows and bool(rows) and bool(columns)
    first, second = (columns, rows) if is_swapped else (rows, columns)
    order = [term.letters.index(letter) for letter in batch + first + second]
    value = transposed(node, term.value, order)
    dims = iter(value.info.known_shape)
    counts = [math.prod(next(dims) for _ in part) for part in (batch, first, second)]
    return reshaped(node, value, counts if batch else counts[1:]), is_swapped


OPERATORS: OperatorTable = {
    "Einsum": Operator(_einsum, rounds_once=True),
}
