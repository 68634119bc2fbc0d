"""Forms of one operation: what a table says of them, and the cases in which all pairs occur."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError
from armpy.ops.operation import Operation
from armpy.types import DataLayout, DataType
from armpy_conformance.case import Case
from armpy_conformance.cases.pairs.covering import Row, covering
from armpy_conformance.definitions.expected import answered
from armpy_conformance.sampling.case_template import (
    COMMON_TYPES,
    CaseTemplate,
    OutputTypes,
    Scale,
    Types,
    is_hybrid,
)

Choice: TypeAlias = Mapping[str, Any]  # Any: values of any factor
"""One value of each factor, by the factor's name."""

Factors: TypeAlias = Mapping[str, Mapping[str, Any]]  # Any: values of any factor
"""Values of each factor by their names; the usual one has no name."""

Combinations: TypeAlias = dict[Hashable, list[tuple[Types, OutputTypes]]]
"""Combinations of types by all that they depend on."""

ARITHMETIC = (
    *COMMON_TYPES,
    DataType.FLOAT16,
    DataType.QASYMM_U8,
    DataType.QSYMM_S16,
    DataType.SIGNED32,
    DataType.BOOLEAN,
)
"""Types of what is computed: every pair occurs in the first two, and every value in each other."""

MOVED = (DataType.FLOAT32, DataType.QASYMM_S8, DataType.SIGNED64)
"""Types of what is moved, which depends on the width of elements at most."""

_SEED = 69
"""Of the rows of chance."""

_TYPE, _QUANTIZATION = "first type", "quantization"

LAYOUTS = {"": DataLayout.NHWC, "nchw": DataLayout.NCHW}
VOLUME_LAYOUTS = {"": DataLayout.NDHWC, "ncdhw": DataLayout.NCDHW}

QUANTIZATIONS: Mapping[str, Mapping[str, Any]] = {  # Any: columns of a template
    "": {},
    "one-scale": {"scales": (Scale(1 / 16, 0.1),), "output": None, "output_scale": None},
    "lowest-zero-point": {"scales": (Scale(1 / 15, -1.0), Scale(1 / 31, 0.3))},
    "highest-zero-points": {"scales": (Scale(1 / 15, 0.4), Scale(1 / 31, 1.0))},
}
"""Columns of a template by the name of the quantisation."""


@dataclass(frozen=True, eq=False)
class FormTable:
    """All forms of one operation.

    Parameters
    ----------
    factors : dict of str to dict
        Of all that the operation's flags and enumerations do not say, and of these where only some
        values are meant.
    make : callable
        Makes a template for one value of each factor; the factors that are named after attributes
        need not be looked at.
    """

    kind: type[Operation]
    factors: Factors
    make: Callable[[Choice], CaseTemplate]
    allows: Callable[[Choice], bool] = lambda _: True
    """Whether values go together: what the operation itself refuses need not be here."""
    quantizations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Columns of the template by the name of the quantisation, as `QUANTIZATIONS`."""
    label: str = "pairs"
    types: Sequence[DataType] = ARITHMETIC
    complete: Sequence[DataType] = COMMON_TYPES
    """Types in which every pair of values occurs, if the operation takes them."""
    decided: Sequence[str] = ()
    """Attributes on which another factor decides."""
    num_drawn: int = 0
    """Rows of chance for each complete type: triples of values, of which pairs show nothing."""

    def all_factors(self) -> dict[str, Mapping[str, Any]]:
        """The factors of the table, and one per flag and enumeration of the operation."""
        own = attribute_factors(self.kind)
        return {n: f for n, f in own.items() if n not in self.decided} | dict(self.factors)

    def cases(self) -> Iterator[Case]:
        """Cases in which each pair of values occurs in some types, and each value in each other."""
        taken = [t for t in self.types if self._takes(t)]
        for data_type in self.complete:
            if data_type in taken:
                factors = self.all_factors()
                if data_type.is_quantized and self.quantizations:
                    factors[_QUANTIZATION] = self.quantizations
                yield from self._covered(factors, {data_type.name: data_type}, "")
                yield from self._drawn({**factors, _TYPE: {data_type.name: data_type}})
        others = {t.name: t for t in taken if t not in self.complete}
        if others:
            yield from self._covered(self.all_factors(), others, _TYPE)

    def _takes(self, data_type: DataType) -> bool:
        """Return whether the type rules have a first operand of a type."""
        rules = self.kind.type_rules
        return not rules or any(data_type in rule.inputs[0] for rule in rules)

    def _covered(
        self, factors: Factors, types: Mapping[str, DataType], centre: str
    ) -> Iterator[Case]:
        """Cases of some types in which pairs of the factors' values occur."""
        values = {**factors, _TYPE: types}
        names = {name: tuple(named) for name, named in values.items()}
        known: Combinations = {}
        yield from covering(
            names,
            lambda row: self._case(values, row, known),
            centre,
            lambda row: self.allows(_chosen(values, row)),
        )

    def _drawn(self, values: Factors) -> Iterator[Case]:
        """Cases of rows of chance."""
        rng = np.random.default_rng(_SEED)
        known: Combinations = {}
        for number in range(self.num_drawn):
            row = {name: str(rng.choice(list(named))) for name, named in values.items()}
            case = self._case(values, row, known)
            if case is not None:
                name, label, types = case.id.split("/")
                yield replace(case, id=f"{name}/drawn-{number}-{label}/{types}")

    def _case(self, values: Factors, row: Row, known: Combinations) -> Case | None:
        """The case of one row; None if its values exclude each other."""
        choice = _chosen(values, row)
        label = "-".join([self.label, *(n for f, n in row.items() if n and f != _TYPE)])
        first: DataType = choice[_TYPE]
        try:
            template = self.make(choice)
            attributes = {n: v for n, v in choice.items() if n in _fields(self.kind)}
            template = replace(
                template,
                label=label,
                operation=template.operation.with_attributes(**attributes),
                **choice.get(_QUANTIZATION, {}),
            )
            combinations = _type_combinations(template, first, known)
            if not combinations:
                return None
            # Combinations of further operands' types take turns with the rows.
            types, outputs = combinations[len(label) % len(combinations)]
            case = template.case(types, outputs)
        except ArmpyError:
            return None
        return replace(case, define=answered)


def _chosen(values: Factors, row: Row) -> Choice:
    """The values of a row."""
    return {name: values[name][chosen] for name, chosen in row.items()}


def _type_combinations(
    template: CaseTemplate, first: DataType, known: Combinations
) -> list[tuple[Types, OutputTypes]]:
    """Combinations of types that begin with one, looked up in those found before."""
    operation = template.operation
    key = (first, len(template.shapes), operation.num_outputs, template.output_types)
    if key not in known:
        chosen = replace(template, types=partial(_begins_with, first))
        known[key] = list(chosen.type_combinations())
    return known[key]


def _begins_with(first: DataType, types: Types) -> bool:
    """Select what begins with a type, and does not mix floats and integers."""
    return types[0] is first and not is_hybrid(types)


@cache
def _fields(kind: type[Operation]) -> set[str]:
    """Names of an operation's attributes."""
    return {item.name for item in dataclasses.fields(kind)}  # type: ignore[arg-type]  # all are


def attribute_factors(kind: type[Operation]) -> dict[str, Mapping[str, Any]]:
    """Factors of the flags and enumerations among an operation's attributes, defaults first.

    Notes
    -----
    Layouts and types are no factors of their own: which of them an operation takes, its template
    says.
    """
    factors: dict[str, Mapping[str, Any]] = {}
    for item in dataclasses.fields(kind):  # type: ignore[arg-type]  # subclasses are dataclasses
        default = item.default
        if isinstance(default, bool):
            name = item.name.replace("_", "-")
            factors[item.name] = {"": default, f"not-{name}" if default else name: not default}
        elif isinstance(default, enum.Enum) and not isinstance(default, DataLayout | DataType):
            others = {v.name.lower().replace("_", "-"): v for v in type(default) if v != default}
            factors[item.name] = {"": default, **others}
    return factors
