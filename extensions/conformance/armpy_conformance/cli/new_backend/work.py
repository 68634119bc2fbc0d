"""Writes the project of a new backend from templates, and says what comes next."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from string import Template

import click

import armpy
from armpy.backend import BACKEND_API_VERSION
from armpy.cli.files import writing
from armpy.core.dataclass import dataclass
from armpy.core.shell import shell_word
from armpy.errors import InvalidArgumentError
from armpy.plugins import install_line
from armpy.types import REFERENCE_BACKEND_ID, BackendId

STYLES = ("workloads", "compiler", "engine", "c", "cpp")
"""A backend runs layers one by one, or compiles subgraphs, or hosts an engine that does, or is a
library in C or C++.
"""

_NAME = re.compile(r"[a-zA-Z0-9]{1,30}")

_COMMON = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "gitignore": ".gitignore",
    "ci.yml": ".github/workflows/ci.yml",
    "__init__.py": "src/$package/__init__.py",
    "py.typed": "src/$package/py.typed",
    "test_backend.py": "tests/test_$package.py",
    "test_conformance.py": "tests/test_${package}_conformance.py",
    "known_failures.txt": "tests/known_failures.txt",
}
"""Paths in the project by name of the template."""

_DEVICE = {
    "layer_support.py": "src/$package/layer_support.py",
    "kernels.py": "src/$package/kernels.py",
}
"""The templates of a project that computes layers itself."""

_WITH_DEVICE = ("workloads", "compiler")
"""Styles of these projects."""

_LIBRARY = {
    "pyproject.toml": "pyproject.toml",
    "setup.py": "setup.py",
    "README.md": "README.md",
    "__init__.py": "src/$package/__init__.py",
    "model.h": "src/$package/model.h",
    "test_library.py": "tests/test_${package}_library.py",
}
"""The templates of a project with a library."""

_COMMON_OF_LIBRARIES = ("gitignore", "py.typed", "test_conformance.py", "known_failures.txt")
"""The common templates that a project with a library has as well."""

_LANGUAGES = {
    "c": {
        "language": "C",
        "source": "library.c",
        "header": "armpy_backend.h",
        "compiler": "CC",
        "command": "cc",
        "flags": "CFLAGS",
        "standard": "c99",
    },
    "cpp": {
        "language": "C++",
        "source": "library.cpp",
        "header": "armpy_backend.hpp",
        "compiler": "CXX",
        "command": "c++",
        "flags": "CXXFLAGS",
        "standard": "c++17",
    },
}
"""Words of the templates by the style of a library."""

_HEADERS = {"c": ("armpy_backend.h",), "cpp": ("armpy_backend.h", "armpy_backend.hpp")}

_BY_STYLE = {
    "c": {"library.c": "src/$package/library.c"},
    "cpp": {"library.cpp": "src/$package/library.cpp"},
    "workloads": {
        "backend.py": "src/$package/backend.py",
        "workloads.py": "src/$package/workloads.py",
    },
    "compiler": {
        "backend.py": "src/$package/backend.py",
        "compiler.py": "src/$package/compiler.py",
        "program.py": "src/$package/program.py",
    },
    "engine": {
        "backend.py": "src/$package/backend.py",
        "converter.py": "src/$package/converter.py",
        "engine.py": "src/$package/engine.py",
    },
}


def new_backend(vendor: str, name: str, folder: str | None, style: str) -> None:
    """Write the project of a backend named <VENDOR>_<NAME>_backend to DIR."""
    names = BackendName(vendor, name)
    target = Path(folder or names.distribution)
    files = write_project(names, style, target)
    click.echo(f"written: {len(files)} files of the backend '{names.backend_id}' to {target}")
    click.echo("next:")
    click.echo(f"  cd {shell_word(str(target))}")
    click.echo("  pip install -e '.[test]'")
    click.echo("  pytest")


@dataclass(frozen=True, slots=True)
class BackendName:
    """The names that follow from a vendor's and a backend's.

    Raises
    ------
    InvalidArgumentError
        If no module can be named so, or the id is armpy's own.
    """

    # Letters and digits.
    vendor: str
    name: str

    def __post_init__(self) -> None:
        for noun, text in (("VENDOR", self.vendor), ("NAME", self.name)):
            if not _NAME.fullmatch(text):
                raise InvalidArgumentError(
                    "the name cannot be part of <vendor>_<name>_backend",
                    where=noun,
                    expected="1 to 30 letters and digits of ASCII",
                    actual=repr(text),
                )
        if self.vendor[0].isdigit():
            raise InvalidArgumentError(
                "a package cannot begin with a digit",
                where="VENDOR",
                expected="a letter first",
                actual=repr(self.vendor),
            )
        if self.backend_id == REFERENCE_BACKEND_ID:
            raise InvalidArgumentError(
                f"the id '{REFERENCE_BACKEND_ID}' is that of armpy's own reference",
                where="VENDOR NAME",
                fix="Choose others",
            )

    @property
    def package(self) -> str:
        """``acme_npu_backend``."""
        return f"{self.vendor}_{self.name}_backend".lower()

    @property
    def distribution(self) -> str:
        """``acme-npu-backend``."""
        return self.package.replace("_", "-")

    @property
    def backend_id(self) -> BackendId:
        """``AcmeNpu``."""
        return "".join(part[0].upper() + part[1:] for part in (self.vendor, self.name))

    @property
    def title(self) -> str:
        """``Acme Npu``."""
        return " ".join(part[0].upper() + part[1:] for part in (self.vendor, self.name))


def write_project(name: BackendName, style: str, folder: Path) -> list[Path]:
    """Write a project that passes its own tests.

    Parameters
    ----------
    style : {"workloads", "compiler", "engine", "c", "cpp"}
    folder : Path
        Made if it is not there.

    Returns
    -------
    list of Path
        The written files, relative to `folder`.

    Raises
    ------
    OSError
        If it cannot be written.
    InvalidArgumentError
        If there is something already, or armpy-native, which has the headers, is missing.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidArgumentError(
            "there is something already, and nothing is overwritten",
            where=str(folder),
            expected="a folder that is empty or not there",
            fix="Name another one",
        )
    words = {
        "package": name.package,
        "distribution": name.distribution,
        "backend_id": name.backend_id,
        "title": name.title,
        "api_version": BACKEND_API_VERSION,
        "armpy_version": armpy.__version__,
        "vendor": name.vendor,
    }
    contents: dict[Path, str] = {}
    places = {"common": _COMMON, style: _BY_STYLE[style]}
    if style in _WITH_DEVICE:
        places["device"] = _DEVICE
    if style in _LANGUAGES:
        words |= _LANGUAGES[style]
        places["common"] = {template: _COMMON[template] for template in _COMMON_OF_LIBRARIES}
        places["library"] = _LIBRARY
        for header in _HEADERS[style]:
            contents[Path("src", name.package, header)] = _header(header, style)
    else:
        words["files"] = _template(style, "files.md").template.rstrip("\n")
    for place, templates in places.items():
        for template, path in templates.items():
            target = Path(Template(path).substitute(words))
            contents[target] = _template(place, template).substitute(words)
    for target, text in contents.items():
        with writing(folder / target):
            (folder / target).parent.mkdir(parents=True, exist_ok=True)
            (folder / target).write_text(text, "utf-8", newline="\n")
    return sorted(contents)


def _header(name: str, style: str) -> str:
    """A header of armpy-native."""
    try:
        return (resources.files("armpy_native") / name).read_text("utf-8")
    except ModuleNotFoundError as error:
        raise InvalidArgumentError(
            f"the header {name} is in a package that is not installed",
            where=f"--style {style}",
            fix=f"Run: {install_line('armpy-native')}",
        ) from error


def _template(place: str, name: str) -> Template:
    """A template by its folder and name."""
    file = resources.files(__package__) / "templates" / place / f"{name}.template"
    return Template(file.read_text("utf-8"))
