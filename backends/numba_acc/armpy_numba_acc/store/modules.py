"""Modules that a module's code is made of, found by the import statements in their texts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>[\w.]+)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n]*)"
    r"|import[ \t]+(?P<modules>[\w., \t]+))",
    re.MULTILINE,
)
_COMMENT = re.compile(r"#[^\n]*")


def files_behind(modules: Iterable[str], within: tuple[str, ...]) -> dict[str, str]:
    """Files of modules and of all that these import, however indirectly, by their sorted names.

    Parameters
    ----------
    modules
        Their full names.
    within
        Packages and modules; others are left out, and not followed.

    Notes
    -----
    Statements count wherever they stand, those for type checkers too. A package that exports its
    names by a stub stands for the modules that the stub names, not for its lazy exports.

    Raises
    ------
    OSError
        If a file cannot be read.
    """
    found: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module in found:
            continue
        if file := _file_within(module, within):
            found[module] = file
            waiting.extend(_imported(file))
    return dict(sorted(found.items()))


@cache
def _file_within(module: str, within: tuple[str, ...]) -> str:
    """The file of a module in some packages or modules; empty if it is elsewhere."""
    is_within = any(module == part or module.startswith(f"{part}.") for part in within)
    return _file_of(module) if is_within else ""


def modules_in(name: str) -> Iterator[str]:
    """The modules whose names stand in a text, each perhaps before the name of a function."""
    for dotted in re.findall(r"\barmpy_numba_acc(?:\.\w+)+", name):
        parts = dotted.split(".")
        prefixes = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
        yield next(prefix for prefix in prefixes if _file_of(prefix))


@cache
def _imported(file: str) -> tuple[str, ...]:
    """Modules and packages that a file's import statements name."""
    with open(file, encoding="utf-8") as stream:
        text = stream.read()
    modules: list[str] = []
    for statement in _IMPORT.finditer(text):
        if statement["modules"]:
            modules += [part.split()[0] for part in statement["modules"].split(",") if part.strip()]
            continue
        module = statement["module"]
        names = _COMMENT.sub("", statement["names"]).strip("()").split(",")
        parts = {f"{module}.{name.split()[0]}" for name in names if name.strip()}
        own = {part for part in parts if _file_of(part)}
        modules += [*own, *([module] if own != parts else [])]
    return tuple(modules)


@cache
def _file_of(module: str) -> str:
    """The file that says what is in a module or package of armpy; empty if there is none."""
    package, *rest = module.split(".")
    folder = _folder_of(package) if package.startswith("armpy") else ""
    if not folder:
        return ""
    path = os.path.join(folder, *rest)
    around, name = os.path.split(path)
    if not rest or name in _names_in(around):
        for file in ("__init__.pyi", "__init__.py"):
            if file in _names_in(path):
                return os.path.join(path, file)
    return f"{path}.py" if rest and f"{name}.py" in _names_in(around) else ""


@cache
def _names_in(folder: str) -> frozenset[str]:
    """Names of a folder's files and folders; none if there is no such folder."""
    try:
        return frozenset(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()


@cache
def _folder_of(package: str) -> str:
    """Where a package is; empty if it is none."""
    spec = find_spec(package)
    return next(iter(spec.submodule_search_locations or ()), "") if spec else ""
