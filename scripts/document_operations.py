"""Writes operations.md from the operation definitions, or checks that it is up to date.

Usage::

    python scripts/document_operations.py [--check]
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import sys

from documenting import field_texts, paragraphs, write_or_check

from armpy import ops
from armpy.ops.operation import Operand, Operation, TypeRule

HEAD = """# Operations

Made from the definitions in `armpy/ops/` by `scripts/document_operations.py`; do not edit.

An operand in brackets may be left out. One with an arrow becomes the attribute behind it as soon as
its value is known; until then the attribute is None. Negative axes count from the end. A
`data_layout` of images is NHWC or NCHW. Types are given as rows: inputs, then outputs; no rows mean
that every type is allowed.

**What is no number.** NaN stays: every output element that is computed of a NaN is NaN, whatever
else it is computed of. That holds for maxima and minima, alone and of windows, for activations and
the clamps of fused ones, for softmax and normalisation. A sum takes part in every product that its
definition has: a weight of 0 makes NaN of NaN and of an infinity, zeros in the padding of a
convolution do so with weights, and what is only moved or chosen by index keeps its bits.
Comparisons with NaN are false, NOT_EQUAL is true; NaN, not being 0, is a true truth value.
Operations that order elements, look for positions or make integers say below what they do. A
backend may compute a convolution with fewer products, which can make NaN of neighbours in the
output, too.
"""


def operations() -> list[type[Operation]]:
    """Every operation that `armpy.ops` exports, by name, but for abstract ones."""
    found = [
        value
        for value in (getattr(ops, name) for name in ops.__all__)
        if inspect.isclass(value) and issubclass(value, Operation) and not inspect.isabstract(value)
    ]
    return sorted(found, key=lambda kind: kind.__name__)


def describe(kind: type[Operation]) -> str:
    """The section of one operation."""
    parts = [f"## {kind.__name__}", paragraphs(kind.__doc__)]
    parts.append(f"Inputs: {', '.join(map(_operand, kind.inputs)) or 'none'}.")
    parts.append(f"Outputs: {', '.join(map(_operand, kind.outputs))}.")
    texts = field_texts(kind)
    fields = [
        f"- `{field.name}: {field.type}` = {_default(field)}. {texts.get(field.name, '')}".rstrip()
        for field in dataclasses.fields(kind)  # type: ignore[arg-type]  # every one is a dataclass
    ]
    if fields:
        parts.append("Attributes:\n\n" + "\n".join(fields))
    if kind.type_rules:
        rows = "\n".join(map(_type_row, kind.type_rules))
        parts.append("| inputs | outputs |\n|---|---|\n" + rows)
    return "\n\n".join(parts)


def _operand(operand: Operand) -> str:
    """One operand in short."""
    name = f"`{operand.name}`" + ("..." if operand.variadic else "")
    if operand.becomes:
        return f"[{name} → `{operand.becomes}`]"
    return f"[{name}]" if operand.optional else name


def _default(field: dataclasses.Field[object]) -> str:
    """An attribute's default value."""
    value = field.default
    if value is dataclasses.MISSING:
        return "(required)"
    if isinstance(value, enum.Enum):
        return f"`{type(value).__name__}.{value.name}`"
    return f"`{value!r}`"


def _type_row(type_rule: TypeRule) -> str:
    """One row of a type table."""
    columns = [
        ", ".join("/".join(sorted(t.name for t in types)) for types in side)
        for side in (type_rule.inputs, type_rule.outputs)
    ]
    return f"| {columns[0]} | {columns[1]} |"


def main() -> int:
    """Write the page, or compare it."""
    page = "\n\n".join([HEAD.rstrip(), *map(describe, operations())]) + "\n"
    description = __doc__.splitlines()[0] if __doc__ else ""
    return write_or_check("operations.md", page, "document_operations.py", description)


if __name__ == "__main__":
    sys.exit(main())
