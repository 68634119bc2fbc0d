"""Loops of micro-kernels that llvmlite's builder writes."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

from armpy_numba_acc.llvm.vectors import I64


def repeat(builder, count, values, step):
    """Loop at least once with values in registers; what they are in the end.

    Parameters
    ----------
    count
        How often the loop turns.
    values : list
        What they are at first.
    step : callable
        ``step(builder, number, values)`` gives the values behind turn `number`.
    """
    before = builder.block
    loop, done = builder.append_basic_block("repeat"), builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    number = builder.phi(I64)
    phis = [builder.phi(value.type) for value in values]
    results = step(builder, number, list(phis))
    following = builder.add(number, I64(1))
    last = builder.block
    pairs = [(number, I64(0), following), *zip(phis, values, results, strict=True)]
    for phi, initial, result in pairs:
        phi.add_incoming(initial, before)
        phi.add_incoming(result, last)
    builder.cbranch(builder.icmp_signed("<", following, count), loop, done)
    builder.position_at_end(done)
    return results
