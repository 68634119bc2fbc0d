"""Cases for every attribute of every operation: each attribute differs from its default in one."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Hashable, Iterator, Sequence
from functools import cache

from armpy.graph import Value
from armpy.graph.network import Network
from armpy.ops.operation import Operation
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.case import Case
from armpy_conformance.cases import operation_cases
from armpy_conformance.contract.networks import Bench, bench
from armpy_conformance.sampling.case_template import COMMON_TYPES

_MOST_ELEMENTS = 2000


@cache
def attribute_cases() -> dict[str, tuple[Case, ...]]:
    """A few cases by operation, in which together each attribute takes all its values.

    Notes
    -----
    Numbers, fractions too, and tuples are away from their defaults, truth values and enumerations
    have each value, for floats as for quantised elements. A case that adds nothing to those before
    it is left out, and those with the most attributes come first.
    """
    by_operation: dict[str, list[Case]] = {}
    for case in operation_cases():
        if is_small(case) and not case.operation.is_random:  # of which no program is kept
            by_operation.setdefault(case.operation.name, []).append(case)
    return {name: tuple(_chosen(cases)) for name, cases in by_operation.items()}


def is_small(case: Case) -> bool:
    """Return whether a case has elements, and not too many to have it in company."""
    infos = [x.info for x in case.inputs if x is not None] + [
        info for info in case.outputs if info.is_fully_shaped
    ]
    return all(0 < info.num_elements <= _MOST_ELEMENTS for info in infos)


def _chosen(cases: Sequence[Case]) -> Iterator[Case]:
    """Cases of one operation, each with something that no other one before it has."""
    covered: set[Hashable] = set()
    for case in sorted(cases, key=lambda case: -len(_coverage(case))):
        new = _coverage(case) - covered
        if new:
            covered |= new
            yield case


def _coverage(case: Case) -> set[Hashable]:
    """A case's type and attributes that differ from their defaults."""
    kind = next((t for t in COMMON_TYPES if t.name == case.data_type), None)
    return {(kind, *item) for item in changed_attributes(case.operation)} | {(kind,)}


def changed_attributes(operation: Operation) -> Iterator[tuple[Hashable, ...]]:
    """Attributes that differ from their defaults, with their values where these are few.

    Of numbers it counts whether they are fractions.
    """
    for field in dataclasses.fields(operation):  # type: ignore[arg-type]  # subclasses are
        value = getattr(operation, field.name)
        if value != field.default:
            is_one_of_few = isinstance(value, bool | enum.Enum)
            is_fraction = isinstance(value, float) and not value.is_integer()
            yield (field.name, value if is_one_of_few else is_fraction)


def side_by_side(subject: BackendUnderTest, cases: Sequence[Case]) -> Bench:
    """A network of the layers of several cases, which have nothing to do with each other."""
    net = Network(cases[0].operation.name)
    feeds = {}
    for number, case in enumerate(cases):
        values: list[Value | None] = []
        for index, item in enumerate(case.inputs):
            name = f"in_{number}_{index}"
            if item is None:
                values.append(None)
            elif item.is_constant:
                info = item.info
                values.append(
                    net.constant(
                        item.data.copy(),
                        name=name,
                        data_type=info.data_type,
                        quantization=info.quantization,
                    )
                )
            else:
                feeds[name] = item.data
                values.append(net.input(name, item.info))
        for index, value in enumerate(case.add_to(net, values, f"layer_{number}")):
            net.output(f"out_{number}_{index}", value)
    return bench(subject, net.build(), feeds)
