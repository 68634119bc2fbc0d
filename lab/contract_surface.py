"""Compares the surface of `armpy.backend` with the one recorded for its version, or records it.

Usage::

    python lab/contract_surface.py [--write]

The surface is every exported name, and what reaches backends of `armpy.graph` and `armpy.tensor`:
of classes their public members with signatures, of enumerations their members. What each version
changes in the one before it is recorded in ``tests/backend/contract_versions.json``.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import inspect
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import armpy.backend
from armpy.backend import BACKEND_API_VERSION
from armpy.graph import Graph, Layer, SubgraphView, Value, Variable
from armpy.tensor import Quantization, TensorInfo

RECORDS = Path(__file__).parents[1] / "tests" / "backend" / "contract_versions.json"

Surface = dict[str, dict[str, str]]
"""Descriptions of the members of each exported name, and of itself under an empty name."""

WHAT_TO_DO = """The surface of armpy.backend is not the one recorded for version {version}:
{changes}
Authors rely on it (docs/reference/compatibility.md). If the change is meant:
1. raise BACKEND_API_VERSION in armpy/backend/interface.py: the minor if everything that worked
   still works, else the major;
2. run python lab/contract_surface.py --write and commit what it writes."""


REACHING = (SubgraphView, Layer, Value, Graph, Variable, TensorInfo, Quantization)
"""What backends are given beside what `armpy.backend` exports."""


def surface() -> dict[str, dict[str, str]]:
    """What `armpy.backend` offers: by exported name, a description of each of its parts."""
    things = {name: getattr(armpy.backend, name) for name in armpy.backend.__all__}
    things |= {thing.__name__: thing for thing in REACHING}
    return {name: _describe(things[name]) for name in sorted(things)}


def _describe(thing: object) -> dict[str, str]:
    """The parts of one exported name; ``""`` is the thing itself."""
    if inspect.isclass(thing) and issubclass(thing, enum.Enum):
        members = {name: repr(member.value) for name, member in thing.__members__.items()}
        return {"": f"enumeration {_bases(thing)}", **members}
    if inspect.isclass(thing):
        return {"": f"class {_bases(thing)}", **_members(thing)}
    if inspect.isfunction(thing):
        return {"": f"function {inspect.signature(thing)}"}
    if isinstance(thing, (str, int)):
        # The version's own value is the record's name.
        return {"": "version" if thing == BACKEND_API_VERSION else f"constant {thing!r}"}
    return {"": f"value {thing}"}


def _bases(kind: type) -> str:
    """A class's bases by name."""
    return f"({', '.join(base.__name__ for base in kind.__bases__)})"


def _members(kind: type) -> dict[str, str]:
    """Public members that a class defines itself."""
    members = {}
    fields = {f.name: f for f in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else {}
    if fields or "__init__" in vars(kind):
        members["__init__"] = str(inspect.signature(kind.__init__))  # type: ignore[misc]  # of a class
    for name, member in vars(kind).items():
        if not name.startswith("_") and name not in fields:
            members[name] = _member(member)
    return dict(sorted(members.items()))


def _member(member: Any) -> str:  # Any: whatever a class holds
    """One member with its signature."""
    if isinstance(member, property):
        text = f"property {inspect.signature(member.fget)}" if member.fget else "property"
    elif isinstance(member, classmethod):
        text = f"classmethod {inspect.signature(member.__func__)}"
    elif inspect.isfunction(member):
        text = f"method {inspect.signature(member)}"
    else:
        text = "attribute"
    return "abstract " + text if getattr(member, "__isabstractmethod__", False) else text


def differences(
    old: Mapping[str, Mapping[str, str]], new: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """One line per part that is new (+), gone (-) or other (~)."""
    flat_old, flat_new = _flat(old), _flat(new)
    lines = []
    for name in sorted(flat_old | flat_new):
        before, after = flat_old.get(name), flat_new.get(name)
        if before is None:
            lines.append(f"+ {name}: {after}")
        elif after is None:
            lines.append(f"- {name}: {before}")
        elif before != after:
            lines.append(f"~ {name}: {before} -> {after}")
    return lines


def _flat(surface: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Every part of a surface under its full name."""
    return {
        f"{name}.{part}".rstrip("."): text
        for name, parts in surface.items()
        for part, text in parts.items()
    }


def breaking(lines: list[str]) -> list[str]:
    """Those of the differences that only another major version may have."""
    added = {_name(line) for line in lines if line[0] == "+"}
    return [
        line
        for line in lines
        if not (line[0] == "~" and _has_more_fields(line))
        if line[0] != "+" or (": abstract " in line and _name(line).partition(".")[0] not in added)
    ]


def _has_more_fields(line: str) -> bool:
    """Return whether a record has only got more fields with defaults, after the others."""
    before, _, after = line.partition(": ")[2].partition(" -> None -> ")
    if not _name(line).endswith(".__init__") or not after.startswith(before[:-1]):
        return False
    # A field's annotation may have commas of its own.
    more = re.split(r", (?=\w+: )", after[len(before) - 1 :].removesuffix(") -> None"))[1:]
    return all(" = " in field for field in more)


def _name(line: str) -> str:
    """What a line is about."""
    return line[2:].partition(":")[0]


def records() -> dict[str, Surface]:
    """The surface of each recorded version, in the order of versions."""
    surfaces: dict[str, Surface] = {}
    latest: Surface = {}
    for version, changes in json.loads(RECORDS.read_text("utf-8")).items():
        latest = {name: dict(members) for name, members in latest.items()}
        for name, members in changes.items():
            kept = latest.setdefault(name, {}) | members
            latest[name] = {member: text for member, text in kept.items() if text is not None}
        surfaces[version] = latest = {name: members for name, members in latest.items() if members}
    return surfaces


def changes_of(old: Surface, new: Surface) -> dict[str, dict[str, str | None]]:
    """What a version changes in the one before it; None for what it removes."""
    changes: dict[str, dict[str, str | None]] = {}
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name, {}), new.get(name, {})
        members = {
            member: after.get(member)
            for member in sorted(before.keys() | after.keys())
            if before.get(member) != after.get(member)
        }
        if members:
            changes[name] = members
    return changes


def write() -> None:
    """Record the surface for the present version."""
    surfaces = records() if RECORDS.exists() else {}
    surfaces[BACKEND_API_VERSION] = surface()
    document, before = {}, Surface()
    for version, recorded in surfaces.items():
        document[version] = changes_of(before, recorded)
        before = recorded
    RECORDS.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def what_to_do() -> str:
    """The fault and its remedy; empty if there is none."""
    record = records().get(BACKEND_API_VERSION)
    changes = ["there is no record"] if record is None else differences(record, surface())
    if not changes:
        return ""
    text = "\n".join(f"  {line}" for line in changes)
    return WHAT_TO_DO.format(version=BACKEND_API_VERSION, changes=text)


def main() -> int:
    """Record the surface, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true", help="record it for the present version")
    if parser.parse_args().write:
        write()
        return 0
    problem = what_to_do()
    print(problem or f"the surface is that of {BACKEND_API_VERSION}")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
