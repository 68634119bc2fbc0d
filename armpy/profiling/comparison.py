"""Two profiles side by side: slower and faster parts, by kind and by layer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from armpy.core.dataclass import dataclass
from armpy.profiling.naming import TOGETHER

if TYPE_CHECKING:
    from armpy.profiling.summary import Share, Summary

_SHOWN = 10
"""Layers in the text of a comparison; the object has all."""


@dataclass(frozen=True, slots=True)
class Change:
    """A part of the time in two profiles."""

    name: str
    """Name as of `Share`; of layers that one of the profiles has as one, the joined name."""
    operation: str
    """Operation of a layer; empty for other events."""
    before: str
    after: str
    """`before` and `after`: the backend in each profile; empty for armpy itself, and where there is
    no such part.
    """
    before_us: float
    after_us: float
    """`before_us` and `after_us`: of one execution, on average; 0 where there is no such part."""

    @property
    def difference_us(self) -> float:
        """Return how much longer it takes in the second profile."""
        return self.after_us - self.before_us

    @property
    def backend(self) -> str:
        """The backend: ``CpuRef -> NumbaAcc`` where that has changed."""
        if self.before == self.after or not (self.before and self.after):
            return self.after or self.before
        return f"{self.before} -> {self.after}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of two profiles, in microseconds of one execution.

    The differences of ``layers``, ``overhead`` and ``waiting`` add up to that of the wall time, and
    so they do with ``operations`` in the place of ``layers``. Each is in order of its difference,
    the largest first, whichever way it goes. Layers are matched by name. Where a backend computes
    several layers as one, these are compared together with it.
    """

    before_us: float
    after_us: float
    """`before_us` and `after_us`: wall time of one execution, on average."""
    before_executions: int
    after_executions: int
    operations: tuple[Change, ...]
    layers: tuple[Change, ...]
    """`operations` and `layers`: the same time by kind of operation, and by layer."""
    overhead: tuple[Change, ...]
    waiting: tuple[Change, ...]

    @property
    def difference_us(self) -> float:
        """Return how much longer an execution takes in the second profile."""
        return self.after_us - self.before_us

    def __str__(self) -> str:
        lines = [
            f"{self.before_us:.1f} us before, {self.after_us:.1f} us after"
            f" ({self.difference_us:+.1f} us) for one execution"
        ]
        parts = (
            ("operations", self.operations),
            ("overhead", self.overhead),
            ("waiting", self.waiting),
            ("layers", self.layers[:_SHOWN]),
        )
        for title, changes in parts:
            lines += [f"{title}:"] if changes else []
            lines += [
                f"  {c.difference_us:+12.1f} us  {c.before_us:10.1f} -> {c.after_us:.1f}  {c.name}"
                + (f" ({c.backend})" if c.backend else "")
                for c in changes
            ]
        return "\n".join(lines)


def compare_summaries(before: Summary, after: Summary) -> Comparison:
    """Return the changes from one profile to another one, by kind and by layer.

    Both are of the same model, maybe on other backends or with other options.

    Examples
    --------
    >>> change = compare_summaries(before, after)               # doctest: +SKIP
    >>> change.layers[0].name, change.layers[0].difference_us   # doctest: +SKIP
    ("Convolution2d 'conv_3'", -812.5)
    """
    # A profile without executions has no time to divide either.
    runs = max(before.num_executions, 1), max(after.num_executions, 1)
    return Comparison(
        before.wall_ns / 1000 / runs[0],
        after.wall_ns / 1000 / runs[1],
        before.num_executions,
        after.num_executions,
        _changes(before.operations, after.operations, runs, [[s.name] for s in before.operations]),
        _changes(before.layers, after.layers, runs, _together(before.layers, after.layers)),
        _changes(before.overhead, after.overhead, runs, []),
        _changes(before.waiting, after.waiting, runs, []),
    )


def _together(before: Iterable[Share], after: Iterable[Share]) -> list[list[str]]:
    """Names of layers that have to be compared as one, as one of the profiles has them so."""
    groups: dict[str, list[str]] = {}
    for share in (*before, *after):
        # Each profile may join others: what shares a layer belongs together.
        parts = (share.layer or share.name).split(TOGETHER)
        joined = list(dict.fromkeys(n for part in parts for n in groups.get(part, [part])))
        for part in joined:
            groups[part] = joined
    # All parts of a group have the same list, which counts once.
    return list({id(group): group for group in groups.values()}.values())


def _changes(
    before: Sequence[Share],
    after: Sequence[Share],
    runs: tuple[int, int],
    groups: Iterable[Sequence[str]],
) -> tuple[Change, ...]:
    """Match parts of two profiles by the names of groups, or their own."""
    of_part = {part: TOGETHER.join(group) for group in groups for part in group}
    sides: tuple[dict[str, list[Share]], dict[str, list[Share]]] = ({}, {})
    for side, shares in zip(sides, (before, after), strict=True):
        for share in shares:
            name = share.layer or share.name
            side.setdefault(of_part.get(name.split(TOGETHER)[0], name), []).append(share)
    names = dict.fromkeys((*sides[0], *sides[1]))
    changes = [_change(sides[0].get(n, []), sides[1].get(n, []), runs, n) for n in names]
    return tuple(sorted(changes, key=lambda change: -abs(change.difference_us)))


def _change(
    before: Sequence[Share], after: Sequence[Share], runs: tuple[int, int], name: str
) -> Change:
    both = [*before, *after]
    operations = dict.fromkeys(share.operation for share in both if share.operation)
    return Change(
        both[0].name if len({share.name for share in both}) == 1 else name,
        TOGETHER.join(operations),
        _who(before),
        _who(after),
        sum(share.total_us for share in before) / runs[0],
        sum(share.total_us for share in after) / runs[1],
    )


def _who(shares: Iterable[Share]) -> str:
    return TOGETHER.join(dict.fromkeys(share.backend for share in shares if share.backend))
