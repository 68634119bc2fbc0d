"""Updates of elements in memory: written there, or combined with the present ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from armpy_numba_acc.llvm.control import loop
from armpy_numba_acc.llvm.primitives import NOTHING, WORD, Primitive, primitive
from armpy_numba_acc.llvm.values import (
    Code,
    CodeValue,
    Kind,
    choose,
    element_bytes,
    kind_of_format,
    vector,
)
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blocks import CopyRun, make_copy_run

Combine = Callable[[CodeValue, CodeValue], CodeValue]
"""Gives what an element and its update make together."""


def _combine_of(reduction: str, format_: str) -> Combine:
    """The function of a reduction; NaN is the extreme."""
    functions: dict[str, Combine] = {
        "add": lambda old, new: old + new,
        "mul": lambda old, new: old * new,
        "max": lambda old, new: choose(old > new, old, new),
        "min": lambda old, new: choose(old < new, old, new),
    }
    if format_ == "f32" and reduction in ("max", "min"):
        extreme = functions[reduction]
        # The present element is never itself the result, which would become a slow masked store.
        return lambda old, new: choose(old.is_nan(), old + new, extreme(old, new))
    if format_.startswith("u"):
        functions["max"] = lambda old, new: choose(old.is_below(new), new, old)
        functions["min"] = lambda old, new: choose(old.is_below(new), old, new)
    return functions[reduction]


@cache
def make_update_run(isa: Isa, reduction: str, format_: str) -> CopyRun:
    """Make ``update(target, source, size)``, which updates `size` bytes and no others.

    Parameters
    ----------
    reduction
        "none", "add", "mul", "max" or "min".
    format_
        Of the elements: ``f32``, or integers of some bits such as ``i16`` and ``u16``.
    """
    if reduction == "none":
        return make_copy_run(isa)
    element, combine = kind_of_format(format_), _combine_of(reduction, format_)
    bytes_each = element_bytes(element)
    lanes = isa.vector_bytes // bytes_each

    @primitive(NOTHING, *(WORD,) * 3)
    def update(code: Code, target: CodeValue, source: CodeValue, size: CodeValue) -> None:
        def step_of(kind: Kind) -> Callable[[CodeValue, list[CodeValue]], list[CodeValue]]:
            def step(at: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
                place = target + at
                place.store(combine(place.load(kind), (source + at).load(kind)))
                return []

            return step

        whole = size / isa.vector_bytes * isa.vector_bytes
        loop(code, whole, [], step_of(vector(element, lanes)), by=isa.vector_bytes)
        loop(code, size, [], step_of(element), start=whole, by=bytes_each)

    return update


@cache
def make_update_element(reduction: str, format_: str) -> Primitive:
    """Make ``update(target, source)`` for one element; parameters as above."""
    element = kind_of_format(format_)
    combine = None if reduction == "none" else _combine_of(reduction, format_)

    @primitive(NOTHING, WORD, WORD)
    def update(code: Code, target: CodeValue, source: CodeValue) -> None:
        new = source.load(element)
        target.store(new if combine is None else combine(target.load(element), new))

    return update
