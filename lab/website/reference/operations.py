"""The page about operations, from their definitions in `armpy.ops`."""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from armpy import ops
from armpy.ops.operation import Operand, Operation, TypeRule
from armpy.types import DataType

from .markdown import field_texts, prose

Rule: TypeAlias = tuple[tuple[frozenset[str], ...], ...]

HEAD = """# Operations

- **Shapes**: `input` has any shape if none is stated.
- **Names elsewhere** follow the description. Papers are in the docstrings:
  `help(armpy.ops.Attention)`.
- **Call**: `input -> output` if nothing else is stated. Operands in brackets are optional.
  `[axis=]` becomes the attribute `axis` when its value is known; until then that is None.
- **Attributes** have their default after `=`, or their type, where `?` stands for None as the
  default. Negative axes count from the end; `data_layout` of images is NHWC or NCHW.
- **Types**: T is one of the types after the colon, the same in the whole line; without an arrow,
  all inputs and outputs have one of these types. *Floats* are FLOAT16, FLOAT32 and FLOAT64,
  *integers* the signed and unsigned ones of 8 to 64 bits, *quantised* QASYMM_S8, QASYMM_U8 and
  QSYMM_S16. A number is one of so many operands in a row. Without types every type is allowed.

Attributes of several operations, where these list them without a text:

COMMON

**NaN.** Every output element that is computed from a NaN is NaN, also in maxima, minima,
activations, clamps, softmax and normalisation. A sum uses every product that its definition has: a
weight of 0 times NaN or infinity is NaN, also in the padding of a convolution with weights.

Operations that only move or choose elements keep their bits. Comparisons with NaN are false,
NOT_EQUAL is true; NaN is a true truth value. Operations that order elements, search positions or
produce integers state their rule below. A backend that computes a convolution with fewer products
can also make neighbours of a NaN NaN.
"""

GROUPS = {
    "floats": frozenset({"FLOAT16", "FLOAT32", "FLOAT64"}),
    "integers": frozenset(
        f"{sign}{bits}" for sign in ("SIGNED", "UNSIGNED") for bits in (8, 16, 32, 64)
    ),
    "quantised": frozenset({"QASYMM_S8", "QASYMM_U8", "QSYMM_S16"}),
}
"""Words for types that are often allowed together."""


def operations() -> list[type[Operation]]:
    """Every operation that `armpy.ops` exports, by name, but for abstract ones."""
    kinds = [
        value
        for value in (getattr(ops, name) for name in ops.__all__)
        if inspect.isclass(value) and issubclass(value, Operation) and not inspect.isabstract(value)
    ]
    return sorted(kinds, key=lambda kind: kind.__name__)


def describe(kind: type[Operation], earlier: Sequence[type[Operation]]) -> str:
    """The section of one operation, which refers to an earlier one of the same types."""
    parts = [f"## {kind.__name__}", *_texts(kind), *_call(kind)]
    parts += _attributes(kind)
    if kind.type_rules:
        lines = _type_lines(kind.type_rules)
        like = [other for other in earlier if other.type_rules == kind.type_rules]
        if lines[1:] and like:
            parts.append(f"Types: as of `{like[0].__name__}`")
        else:
            parts.append(
                "\n".join(["Types:", "", *lines] if lines[1:] else [f"Types: {lines[0][2:]}"])
            )
    return "\n\n".join(parts)


def _texts(kind: type[Operation]) -> list[str]:
    """The description, and the names of the operation elsewhere."""
    text, _, references = prose(kind.__doc__).partition("\n\nReferences: ")
    paragraphs = [part.removeprefix("input (...); ") for part in text.split("\n\n")]
    names = references.rstrip(".").replace("*", r"\*").split("; ")
    listed = "; ".join(name for name in names if name and not re.search(r", \d{4}$", name))
    return [*paragraphs, f"*{listed}*"] if listed else paragraphs


def _call(kind: type[Operation]) -> list[str]:
    """The operands, unless there is one input and one output, which have these names."""
    inputs, outputs = (", ".join(map(_operand, side)) for side in (kind.inputs, kind.outputs))
    if (inputs, outputs) == ("`input`", "`output`"):
        return []
    return [f"Call: {inputs} -> {outputs}".strip()]


def attribute_groups(kind: type[Operation]) -> list[tuple[str, str]]:
    """The attributes of each common text, or without any, with their text."""
    texts = field_texts(kind)
    for name, text in list(texts.items()):
        names, separator, common = text.partition(": ")
        shared = re.findall(r"`(\w+)`", names)
        if separator and name in shared and not re.sub(r"`\w+`|,| and ", "", names).strip():
            texts |= dict.fromkeys(shared, common[:1].upper() + common[1:])
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]  # every one is a dataclass
    return [
        (", ".join(f"`{_setting(field)}`" for field in group), text)
        for text, group in itertools.groupby(fields, key=lambda field: texts.get(field.name, ""))
    ]


@functools.cache
def common_attributes() -> list[tuple[str, str]]:
    """Attributes that several operations have with one text, and none with none."""
    counts = Counter(group for kind in operations() for group in attribute_groups(kind))
    common = [group for group, count in counts.items() if count > 1 and group[1]]
    texts = Counter(setting for setting, _ in common)
    return sorted(
        group for group in common if texts[group[0]] == 1 and (group[0], "") not in counts
    )


def _attributes(kind: type[Operation]) -> list[str]:
    """List the attributes, those without a text of their own in a line."""
    groups = [(s, "" if (s, t) in common_attributes() else t) for s, t in attribute_groups(kind)]
    lines = []
    for text, members in itertools.groupby(groups, key=lambda group: group[1]):
        settings = [setting for setting, _ in members]
        lines += _attribute_lines([(", ".join(settings), text)])
    return ["\n".join(lines)] if lines else []


def _attribute_lines(groups: Sequence[tuple[str, str]]) -> list[str]:
    """Lines of a list of attributes."""
    return [f"- {setting}" + f": {text}" * bool(text) for setting, text in groups]


def _operand(operand: Operand) -> str:
    """One operand in short."""
    name = operand.name + "..." * operand.variadic
    if operand.becomes:
        return f"`[{name}={operand.becomes if operand.becomes != name else ''}]`"
    return f"`[{name}]`" if operand.optional else f"`{name}`"


def _setting(field: dataclasses.Field[object]) -> str:
    """An attribute with its default value, or with its type if that is missing or None."""
    value = field.default
    if value is dataclasses.MISSING or value is None:
        return f"{field.name}: {str(field.type).replace(' | None', '?')}"
    if isinstance(value, enum.Enum):
        return f"{field.name}={type(value).__name__}.{value.name}"
    return f"{field.name}={value!r}"


def _type_lines(type_rules: Sequence[TypeRule]) -> list[str]:
    """List the allowed types; rules that differ in one type are one line, with T in its place."""
    rules = [
        tuple(
            tuple(frozenset(data_type.name for data_type in types) for types in side)
            for side in (type_rule.inputs, type_rule.outputs)
        )
        for type_rule in type_rules
    ]
    lines = []
    while rules:
        candidates = [pattern for rule in rules for pattern in _patterns(rule)]
        covered = [_covered(pattern, rules) for pattern in candidates]
        best = max(range(len(covered)), key=lambda index: len(covered[index]), default=None)
        if best is None or len(covered[best]) == 1:
            pattern, types, handled = rules[0], [""], rules[:1]
        else:
            pattern, types = candidates[best], list(covered[best])
            handled = list(covered[best].values())
        cells = [_side(side) for side in pattern]
        choices = _short(types, ", ")
        if {name for side in pattern for names in side for name in names} == {"T"}:
            lines.append(f"- {choices}")
        else:
            lines.append(f"- {cells[0]} -> {cells[1]}" + f"; T: {choices}" * bool(choices))
        rules = [rule for rule in rules if rule not in handled]
    return lines


def _side(side: Sequence[frozenset[str]]) -> str:
    """The types of inputs or outputs; three or more equal ones in a row are counted."""
    cells = []
    for cell, equal in itertools.groupby(_short(sorted(names), "/") for names in side):
        count = len(list(equal))
        cells += [f"{count} {cell}"] if count > 2 else [cell] * count
    return ", ".join(cells)


def _short(names: Sequence[str], separator: str) -> str:
    """The names of types, with words for common groups, or the omitted types if they are few."""
    missing = sorted({data_type.name for data_type in DataType} - set(names))
    if len(missing) < 3:
        return f"every type but {' and '.join(missing)}" if missing else "every type"
    groups = {group: members for group, members in GROUPS.items() if members <= {*names}}
    grouped = frozenset().union(*groups.values())
    return separator.join([*groups, *(name for name in names if name not in grouped)])


def _patterns(rule: Rule) -> Iterator[Rule]:
    """A rule with T in the place of each type that is an operand's only one."""
    for name in _single(rule):
        yield _replaced(rule, name, "T", in_sets=False)
        yield _replaced(rule, name, "T", in_sets=True)


def _covered(pattern: Rule, rules: Sequence[Rule]) -> dict[str, Rule]:
    """The rules that a pattern stands for, by the type that T is."""
    return {
        name: rule
        for rule in rules
        for name in _single(rule)
        if _replaced(pattern, "T", name, in_sets=True) == rule
    }


def _single(rule: Rule) -> list[str]:
    """The types that are an operand's only one."""
    return sorted({name for side in rule for names in side if len(names) == 1 for name in names})


def _replaced(rule: Rule, old: str, new: str, *, in_sets: bool) -> Rule:
    """A rule with one name for another, where it is an operand's only one or everywhere."""
    return tuple(
        tuple(
            names - {old} | {new} if old in names and (in_sets or len(names) == 1) else names
            for names in side
        )
        for side in rule
    )


def page() -> str:
    """The page's text."""
    kinds = operations()
    head = HEAD.rstrip().replace("COMMON", "\n".join(_attribute_lines(common_attributes())))
    sections = [describe(kind, kinds[:number]) for number, kind in enumerate(kinds)]
    return "\n\n".join([head, *sections]) + "\n"
