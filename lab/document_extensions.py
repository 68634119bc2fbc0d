"""Writes armpy/plugins/extension_tables.py from the projects of this repository, or checks it.

Usage::

    python lab/document_extensions.py [--check]

What is installed announces itself by entry points. The tables serve errors about what is not
installed, and the help of commands of armpy's own backends, which is shown without importing them.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import click

from armpy.core.dataclass import dataclass
from armpy.plugins.discovery.references import load_reference
from armpy.plugins.hooks import CustomOperator, FrontEnd

ROOT = Path(__file__).parents[1]
PATH = ROOT / "armpy" / "plugins" / "extension_tables.py"
WIDTH = 100

HEAD = '''"""Tables of what armpy's extensions add, for errors about those that are not installed.

Made by lab/document_extensions.py; do not edit. Nothing here decides what is used: installed
distributions announce themselves by entry points.
"""

from __future__ import annotations

from collections.abc import Mapping
'''


@dataclass(frozen=True)
class Project:
    """A project of this repository: an extension, or a backend of armpy's distribution."""

    folder: str  # seen from the root
    table: Mapping[str, Any]  # Any: the table ``project`` of its pyproject.toml

    @property
    def name(self) -> str:
        """The distribution's name."""
        return str(self.table["name"])

    @property
    def package(self) -> str:
        """The package that it brings."""
        return self.name.replace("-", "_")

    @property
    def needed(self) -> tuple[str, ...]:
        """The distributions that it depends on, by name."""
        requirements = self.table.get("dependencies", ())
        return tuple(re.split(r"[^\w-]", text, maxsplit=1)[0] for text in requirements)

    @property
    def backend_ids(self) -> list[str]:
        """The ids of the backends that it brings."""
        return [*self.table.get("entry-points", {}).get("armpy.backends", {})]

    def plugins(self, group: str) -> Iterator[Any]:
        """The objects that it announces in a group of entry points."""
        for reference in self.table.get("entry-points", {}).get(group, {}).values():
            yield load_reference(reference)

    @cached_property
    def commands(self) -> dict[str, str]:
        """A line about each command that it adds, by name."""
        return {
            str(command.name): command.get_short_help_str(limit=WIDTH)
            for plugin in self.plugins("armpy.commands")
            for command in _listed(plugin.armpy_add_cli_commands(), click.Command)
        }

    @cached_property
    def suffixes(self) -> list[str]:
        """Suffixes of the files that it reads."""
        return [
            suffix
            for plugin in self.plugins("armpy.front_ends")
            for front_end in _listed(plugin.armpy_register_front_end(), FrontEnd)
            for suffix in front_end.suffixes
        ]

    @cached_property
    def custom_operators(self) -> list[str]:
        """Names of the custom operators of .tflite files that it has layers for."""
        return [
            operator.name
            for plugin in self.plugins("armpy.custom_operators")
            for operator in _listed(plugin.armpy_register_custom_operators(), CustomOperator)
        ]


def main() -> int:
    """Write the module, or compare it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if the module is out of date")
    arguments = parser.parse_args()
    text = module_text(read_projects("extensions"), read_projects("backends"))
    if not arguments.check:
        PATH.write_text(text, "utf-8")
    elif PATH.read_text("utf-8") != text:
        print(f"{PATH.relative_to(ROOT)} is out of date: run python lab/{Path(__file__).name}")
        return 1
    return 0


def read_projects(folder: str) -> list[Project]:
    """The projects in a folder of the repository, by name."""
    found = [
        Project(path.parent.relative_to(ROOT).as_posix(), _table(path))
        for path in ROOT.glob(f"{folder}/*/pyproject.toml")
    ]
    return sorted(found, key=lambda project: project.name)


def module_text(extensions: list[Project], backends: list[Project]) -> str:
    """The text of the module."""
    announced = _table(ROOT / "pyproject.toml")["entry-points"]["armpy.backends"].values()
    with_armpy = {reference.partition(":")[0] for reference in announced}
    own = [project for project in backends if project.package in with_armpy]
    others = [project for project in backends if project not in own]
    names = {project.name for project in extensions}
    tables = [
        _mapping(
            "COMMANDS",
            {name: _quoted(p.name) for p in extensions for name in p.commands},
            "Distributions by the command that they add to ``armpy``, groups before commands.",
        ),
        _mapping(
            "BACKEND_COMMANDS",
            {name: _quoted(line) for p in own for name, line in p.commands.items()},
            "Lines about the commands that backends of armpy's own distribution add.",
        ),
        _mapping(
            "SUFFIXES",
            {suffix: _quoted(p.name) for p in extensions for suffix in p.suffixes},
            "Distributions by the suffix of the files that they read.",
        ),
        _tuple(
            "MODEL_SUFFIXES",
            sorted({".tflite", *(suffix for p in extensions for suffix in p.suffixes)}),
            "Endings of the names of models that armpy and its extensions read, but compiled ones.",
        ),
        _mapping(
            "CUSTOM_OPERATORS",
            {name: _quoted(p.name) for p in extensions for name in p.custom_operators},
            "Distributions by the custom operators of .tflite files that they have layers for.",
        ),
        _tuple(
            "PLACERS",
            [p.name for p in extensions if any(p.plugins("armpy.placement"))],
            "Distributions that decide by cost where layers run.",
        ),
        _mapping(
            "NEEDED",
            {p.name: _names(_needed(p, names)) for p in extensions},
            "Extensions to install for one: those that it depends on, and itself.",
            kind="tuple[str, ...]",
        ),
        _mapping(
            "FOLDERS",
            {p.name: _quoted(p.folder) for p in [*extensions, *own]},
            "Folders of distributions in a checkout.",
        ),
        _mapping(
            "BACKENDS",
            {name: _quoted(p.name) for p in others for name in p.backend_ids},
            "Distributions by the backends that they bring, without those of armpy's own.",
        ),
        _mapping(
            "BACKEND_FOLDERS",
            {p.name: _quoted(p.folder) for p in others},
            "Folders of other distributions of backends in a checkout.",
        ),
    ]
    return "\n".join([HEAD, *tables])


def _table(path: Path) -> Mapping[str, Any]:  # Any: TOML
    table: Mapping[str, Any] = tomllib.loads(path.read_text("utf-8"))["project"]
    return table


def _listed(answer: object, kind: type) -> list[Any]:
    """A hook's answer as a list."""
    return [answer] if isinstance(answer, kind) else list(answer or ())  # type: ignore[call-overload]


def _needed(project: Project, extensions: Collection[str]) -> Iterator[str]:
    """The extensions that one depends on, and itself."""
    yield from filter(extensions.__contains__, project.needed)
    yield project.name


def _quoted(text: str) -> str:
    return f'"{text}"'


def _names(names: Iterator[str]) -> str:
    quoted = [_quoted(name) for name in names]
    end = "," if len(quoted) == 1 else ""
    return f"({', '.join(quoted)}{end})" if quoted else ""


def _mapping(name: str, rows: Mapping[str, str], text: str, kind: str = "str") -> str:
    """A table of values of a kind, and its documentation."""
    lines = [_row(key, rows[key]) for key in sorted(rows)]
    return f'{name}: Mapping[str, {kind}] = {{\n{"".join(lines)}}}\n"""{text}"""\n'


def _row(key: str, value: str) -> str:
    """A row of a table, as ruff formats it."""
    line = f"    {_quoted(key)}: {value},\n"
    return line if len(line) <= WIDTH else f"    {_quoted(key)}: (\n        {value}\n    ),\n"


def _tuple(name: str, names: list[str], text: str) -> str:
    """A sorted tuple and its documentation."""
    return f'{name} = {_names(iter(sorted(names)))}\n"""{text}"""\n'


if __name__ == "__main__":
    sys.exit(main())
