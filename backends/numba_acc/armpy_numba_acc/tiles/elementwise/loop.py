"""The innermost loop of elementwise kernels: an expression of neighbouring elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from armpy_numba_acc.llvm.control import loop
from armpy_numba_acc.llvm.primitives import Definition, defined, linked
from armpy_numba_acc.llvm.values import F32, Code, CodeValue
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.elementwise.elements import (
    for_each_vector,
    load_elements,
    register_bytes,
    store_elements,
    stored_kind,
    widened,
)
from armpy_numba_acc.tiles.elementwise.expressions import expression_named, for_bfloat16, for_isa

NAME, NUM_ARGUMENTS = "armpy_elements", 6
compute_elements = linked(NAME, NUM_ARGUMENTS)
"""Calls a function of neighbouring elements, see `byte_table_definition`."""

ROWS_NAME, NUM_ROWS_ARGUMENTS = "armpy_rows", 11
compute_rows = linked(ROWS_NAME, NUM_ROWS_ARGUMENTS)
"""Calls what `elementwise_definition` writes."""


def elementwise_definition(isa: Isa, name: str, formats: Sequence[str], patterns: str) -> str:
    """Write the function that computes rows of neighbouring elements.

    The output may be the same memory as an input of elements of the same size. Nothing
    after the elements is read.

    Parameters
    ----------
    name
        Of an expression.
    formats
        How each input and the output are stored.
    patterns
        A letter per input: ``v`` for an element per output's, ``s`` for one for all.

    Returns
    -------
    str
        In LLVM's language: ``void armpy_rows(first, second, third, output, count, parameters,
        rows, first_pitch, second_pitch, third_pitch, output_pitch)``, all of them 64-bit
        integers: addresses of the inputs (as many as there are), of the output, number of
        elements of a row, address of the parameters, one float32 in each 8 bytes; number of
        rows, bytes from one of them to the next.
    """
    *input_formats, output_format = formats
    # The quicker form consists of instructions on 64 bytes.
    is_quick = output_format == "bf16" and isa.vector_bytes == 64
    name = for_bfloat16(name) if is_quick else name
    expression = expression_named(for_isa(isa, name))
    lanes = isa.vector_bytes // max(map(register_bytes, formats))

    def write(code: Code, *arguments: CodeValue) -> None:
        parameters = arguments[5]
        # Read here, as a store in the loop might write to their memory for all that LLVM knows.
        numbers = [parameters.load(F32, 2 * n) for n in range(expression.num_parameters)]

        def row(inputs: Sequence[CodeValue], output: CodeValue, count: CodeValue) -> None:
            singles = [
                address.load(stored_kind(format_)) if pattern == "s" else None
                for address, format_, pattern in zip(inputs, input_formats, patterns, strict=True)
            ]

            def compute(lanes: int, index: CodeValue, mask: CodeValue | None) -> None:
                values = [
                    load_elements(address, format_, index, lanes, mask)
                    if single is None
                    else widened(single.splat(lanes), format_)
                    for address, format_, single in zip(inputs, input_formats, singles, strict=True)
                ]
                values += [number.splat(lanes) for number in numbers]
                store_elements(expression.compute(*values), output, output_format, index, mask)

            for_each_vector(isa, lanes, count, compute)

        for_each_row(arguments, len(patterns), row)

    return defined(Definition(ROWS_NAME, NUM_ROWS_ARGUMENTS, write))


Row = Callable[[Sequence[CodeValue], CodeValue, CodeValue], None]
"""Writes the code for a row: addresses of its inputs and of its output, number of elements."""


def for_each_row(arguments: Sequence[CodeValue], num_inputs: int, write: Row) -> None:
    """Write the loop over rows of a function with the arguments of `elementwise_definition`'s."""
    addresses = [*arguments[:num_inputs], arguments[3]]
    pitches = [*arguments[7 : 7 + num_inputs], arguments[10]]
    count, rows = arguments[4], arguments[6]

    def step(_: CodeValue, here: list[CodeValue]) -> list[CodeValue]:
        write(here[:-1], here[-1], count)
        return [address + pitch for address, pitch in zip(here, pitches, strict=True)]

    loop(rows.code, rows, addresses, step)
