"""The innermost loop of elementwise kernels: an expression of neighbouring elements."""

from __future__ import annotations

from collections.abc import Sequence

from armpy_numba_acc.llvm.primitives import Definition, defined, linked
from armpy_numba_acc.llvm.values import F32, Code, Value
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.elements import (
    for_each_vector,
    load_elements,
    register_bytes,
    store_elements,
    stored_kind,
    widened,
)
from armpy_numba_acc.tiles.expressions import expression_named, for_bfloat16

NAME, NUM_ARGUMENTS = "armpy_elements", 6
compute_elements = linked(NAME, NUM_ARGUMENTS)
"""Calls what `elementwise_definition` writes."""


def elementwise_definition(isa: Isa, name: str, formats: Sequence[str], patterns: str) -> str:
    """Write the function that computes neighbouring elements.

    Parameters
    ----------
    isa : Isa
    name : str
        Of an expression.
    formats : sequence of str
        How each input and the output are stored.
    patterns : str
        A letter per input: ``v`` for an element per output's, ``s`` for one for all.

    Returns
    -------
    str
        In LLVM's language: ``void armpy_elements(first, second, third, output, count,
        parameters)``, all of them 64-bit integers: addresses of the inputs (as many as there
        are), of the output, number of elements, address of the parameters, one float32 in
        each 8 bytes.

    Notes
    -----
    The output may be the same memory as an input of elements of the same size. Nothing
    behind the elements is read.
    """
    *input_formats, output_format = formats
    expression = expression_named(for_bfloat16(name) if output_format == "bf16" else name)
    lanes = isa.vector_bytes // max(map(register_bytes, formats))

    def write(code: Code, *arguments: Value) -> None:
        inputs, (output, count, parameters) = arguments[: len(patterns)], arguments[3:]
        # Read here, as a store in the loop might write to their memory for all that LLVM knows.
        numbers = [parameters.load(F32, 2 * n) for n in range(expression.num_parameters)]
        singles = [
            address.load(stored_kind(format_)) if pattern == "s" else None
            for address, format_, pattern in zip(inputs, input_formats, patterns, strict=True)
        ]

        def compute(lanes: int, index: Value, mask: Value | None) -> None:
            values = [
                load_elements(address, format_, index, lanes, mask)
                if single is None
                else widened(single.splat(lanes), format_)
                for address, format_, single in zip(inputs, input_formats, singles, strict=True)
            ]
            values += [number.splat(lanes) for number in numbers]
            store_elements(expression.compute(*values), output, output_format, index, mask)

        for_each_vector(isa, lanes, count, compute)

    return defined(Definition(NAME, NUM_ARGUMENTS, write))
