"""Loops and conditions of code under construction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from armpy_numba_acc.llvm.values import Code, CodeValue, choose

Step = Callable[[CodeValue, list[CodeValue]], Sequence[CodeValue]]
"""Takes the number of a turn and the values in front of it; gives those after it."""

Turn = Callable[[list[CodeValue]], tuple[CodeValue, Sequence[CodeValue]]]
"""Takes the values in front of a turn; gives whether there is another one, and those after it."""


def loop(
    code: Code,
    end: CodeValue,
    values: Sequence[CodeValue],
    step: Step,
    *,
    start: CodeValue | None = None,
    by: int = 1,
) -> list[CodeValue]:
    """Loop, maybe never, with values in registers; return their final values.

    Parameters
    ----------
    end
        How often the loop turns, or if it does not count from 0 by 1, the first number that it
        has no turn of.
    values
        Their initial values.
    step : callable
        See `Step`.
    start
        Number of the first turn.
    by
        From one turn's number to the next.
    """
    builder = code.builder
    head, body, done = (builder.append_basic_block(name) for name in ("head", "body", "done"))
    before = builder.block
    builder.branch(head)
    builder.position_at_end(head)
    first = [code.integer(0) if start is None else start, *values]
    number, *carried = phis = [code.of(builder.phi(value.kind)) for value in first]
    builder.cbranch((number < end).value, body, done)
    builder.position_at_end(body)
    results = step(number, list(carried))
    following = [number + by, *results]
    last = builder.block
    builder.branch(head)
    _join(phis, (before, first), (last, following))
    builder.position_at_end(done)
    return carried


def loop_while(code: Code, values: Sequence[CodeValue], turn: Turn) -> list[CodeValue]:
    """Loop at least once with values in registers; return their final values.

    Parameters
    ----------
    values
        Their initial values.
    turn : callable
        See `Turn`.
    """
    builder = code.builder
    body, done = (builder.append_basic_block(name) for name in ("turn", "done"))
    before = builder.block
    builder.branch(body)
    builder.position_at_end(body)
    carried = [code.of(builder.phi(value.kind)) for value in values]
    goes_on, results = turn(list(carried))
    last = builder.block
    builder.cbranch(goes_on.value, body, done)
    _join(carried, (before, values), (last, results))
    builder.position_at_end(done)
    return list(results)


def repeat(
    code: Code, count: CodeValue, values: Sequence[CodeValue], step: Step
) -> list[CodeValue]:
    """As `loop`, of a count that is at least 1."""

    def turn(carried: list[CodeValue]) -> tuple[CodeValue, Sequence[CodeValue]]:
        number, *rest = carried
        results = step(number, rest)
        following = number + 1
        return following < count, [following, *results]

    return loop_while(code, [code.integer(0), *values], turn)[1:]


def when(
    condition: CodeValue,
    then: Callable[[], Sequence[CodeValue]],
    otherwise: Callable[[], Sequence[CodeValue]] | None = None,
    *,
    likely: bool | None = None,
) -> list[CodeValue]:
    """Run one of two pieces of code; return its result.

    Parameters
    ----------
    then, otherwise : callable
        Write the code, and give as many values of the same types; nothing for `otherwise` if it
        is left out.
    likely
        Which of the two is run nearly always.
    """
    builder = condition.code.builder
    if otherwise is None:
        with builder.if_then(condition.value, likely=likely):
            then()
        return []
    with builder.if_else(condition.value, likely=likely) as (yes, no):
        with yes:
            ones = then()
            end_of_ones = builder.block
        with no:
            others = otherwise()
            end_of_others = builder.block
    merged = [condition.of(builder.phi(value.kind)) for value in ones]
    _join(merged, (end_of_ones, ones), (end_of_others, others))
    return merged


def replaced(mask: CodeValue, values: CodeValue, compute: Callable[[], CodeValue]) -> CodeValue:
    """`values`, but where the mask is set what `compute` gives: it is run if a bit is."""

    def others() -> list[CodeValue]:
        return [choose(mask, compute(), values)]

    return when(mask.any(), others, lambda: [values], likely=False)[0]


def _join(phis: Sequence[CodeValue], *sides: tuple[Any, Sequence[CodeValue]]) -> None:
    """Say what values are, coming from each of some blocks (Any: llvmlite has no types)."""
    for block, values in sides:
        for phi, value in zip(phis, values, strict=True):
            phi.value.add_incoming(value.value, block)
