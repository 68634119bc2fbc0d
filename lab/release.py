"""Builds a release and checks it; publishes nothing.

Usage::

    python lab/release.py [--out FOLDER] [--tag TAG] [--extra NAME ...]
    python lab/release.py --rehearse [--out FOLDER] [--only NAME ...]

1. Every distribution of the repository has the same version, and CHANGELOG.md has a dated section
   for it; a tag, if one is given, names it. Extensions pin the others to that version. Backends
   admit it, and may admit others: the contract that they need has versions of its own.
2. Source archives and wheels of all distributions are built. They pass ``twine check --strict``,
   and the checks of what wheels hold (`wheel_contents.py`).
3. Each extra that users install is installed from them in a fresh environment, where it has to run
   a model on both backends. Each backend that is a distribution of its own is installed, too.
4. A bill of materials (CycloneDX, JSON) of an environment with all these extras is written.

Needs the extra ``release`` and a package index. A rehearsal needs neither, only ``build`` and
``setuptools``: it builds from a copy of the tree and checks what wheels hold, and leaves out the
date of the changelog's section, twine, and what is installed.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from packaging.requirements import Requirement
from try_sources import build as build_copy
from try_sources import copy_project
from try_wheels import BACKEND_IDS, read_digit, wrong_in
from wheel_contents import problems_in

ROOT = Path(__file__).parents[1]
DEVELOPMENT = {"bench", "browser", "dev", "docs", "release", "test", "torch"}
"""Extras for working on armpy, which are not tried."""

Project: TypeAlias = dict[str, Any]  # Any: the contents of a pyproject.toml


def main(arguments: Sequence[str] | None = None) -> int:
    """Build and check everything; 1 if there are problems, which are printed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the files go")
    parser.add_argument("--tag", default="", help="what is released; empty for no tag")
    parser.add_argument("--extra", action="append", help="try only this one; may be repeated")
    parser.add_argument("--rehearse", action="store_true", help="build and check wheels alone")
    parser.add_argument("--only", nargs="+", help="rehearse only the distributions of these names")
    options = parser.parse_args(arguments)
    projects = read_projects(ROOT)
    version = projects[ROOT]["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    problems = [*version_problems(projects.values()), *tag_problems(options.tag, version)]
    if options.rehearse:
        by_name = {project["project"]["name"]: home for home, project in projects.items()}
        folders = [by_name[name] for name in options.only or by_name]
        problems = problems or rehearse(folders, options.out)
    else:
        problems += changelog_problems(changelog, version)
        problems = problems or build(projects, options.out)
    if not problems and not options.rehearse:
        extras = user_extras(projects[ROOT])
        for extra in options.extra or ["", *extras]:
            problems += try_extra(extra, version, options.out)
        for name in () if options.extra else backend_names(projects.values()):
            problems += try_backend(name, version, options.out)
        bill = options.out / f"armpy-{version}.cdx.json"
        problems += write_bill_of_materials(extras, version, options.out, bill)
    print(*(f"problem: {problem}" for problem in problems), sep="\n")
    print(f"armpy {version}: {len(problems)} problems" if problems else f"armpy {version} is ready")
    return 1 if problems else 0


def read_projects(root: Path) -> dict[Path, Project]:
    """``pyproject.toml`` of each distribution, by folder; armpy itself is the first.

    The others are extensions, backends that armpy's wheel does not hold, and what tests share.
    """
    armpy = _read_project(root)
    with_armpy = {
        root / place for place in armpy["tool"]["setuptools"]["packages"]["find"]["where"]
    }
    places = ("extensions/*/pyproject.toml", "backends/*/pyproject.toml")
    others = sorted(path.parent for place in places for path in root.glob(place))
    folders = [folder for folder in (*others, root / "testing") if folder not in with_armpy]
    return {root: armpy} | {folder: _read_project(folder) for folder in folders}


def _read_project(folder: Path) -> Project:
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))


def backend_names(projects: Iterable[Project]) -> list[str]:
    """Names of the distributions that bring backends, besides armpy itself."""
    tables = [project["project"] for project in projects]
    return [table["name"] for table in tables[1:] if _is_backend(table)]


def _is_backend(table: Project) -> bool:
    return not {"armpy.backends", "armpy.libraries"}.isdisjoint(table.get("entry-points", ()))


def version_problems(projects: Iterable[Project]) -> Iterator[str]:
    """Versions and pins that differ from the first project's version."""
    tables = [project["project"] for project in projects]
    version = tables[0]["version"]
    names = {table["name"] for table in tables}
    for table in tables:
        if table["version"] != version:
            yield f"{table['name']} has version {table['version']}. Expected {version}."
        for requirement in table.get("dependencies", ()):
            needed = Requirement(requirement)
            if _is_backend(table):
                expected = f"a range with {version}"
                is_right = needed.specifier.contains(version, prereleases=True)
            else:
                expected = f"{needed.name}=={version}"
                is_right = str(needed.specifier) == f"=={version}"
            if needed.name in names and not is_right:
                yield f"{table['name']} requires {requirement}. Expected {expected}."


def changelog_problems(text: str, version: str) -> Iterator[str]:
    """A missing section of a version, or a section without date."""
    heading = re.search(rf"^## {re.escape(version)}(.*)$", text, re.MULTILINE)
    if heading is None:
        yield f"CHANGELOG.md has no section '## {version} (YYYY-MM-DD)'."
    elif not re.fullmatch(r" \(\d{4}-\d\d-\d\d\)", heading[1]):
        yield f"CHANGELOG.md: '{heading[0]}' has no date. Write '## {version} (YYYY-MM-DD)'."


def tag_problems(tag: str, version: str) -> Iterator[str]:
    """A tag of another version."""
    if tag not in ("", f"v{version}"):
        yield f"The tag is {tag}. Expected v{version}."


def user_extras(project: Project) -> list[str]:
    """Names of the extras that users install."""
    return sorted(set(project["project"]["optional-dependencies"]) - DEVELOPMENT)


def build(folders: Iterable[Path], out: Path) -> list[str]:
    """Build source archives and wheels, and check their metadata."""
    out.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        with tempfile.TemporaryDirectory() as work:
            copy = copy_project(folder, Path(work))
            problems = run([sys.executable, "-m", "build", "--outdir", str(out), str(copy)])
        if problems:
            return problems
    problems = wheel_problems(out)
    files = sorted(str(path) for path in out.iterdir() if path.suffix in (".whl", ".gz"))
    return problems or run([sys.executable, "-m", "twine", "check", "--strict", *files])


def rehearse(folders: Iterable[Path], out: Path) -> list[str]:
    """Build everything from copies, with what is installed here, and check the wheels."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        for folder in folders:
            build_copy(folder, Path(work))
        for path in Path(work, "dist").iterdir():
            shutil.copy(path, out)
    return wheel_problems(out)


def wheel_problems(out: Path) -> list[str]:
    """What is wrong with the wheels in a folder."""
    wheels = sorted(out.glob("*.whl"))
    return [f"{wheel.name}: {problem}" for wheel in wheels for problem in problems_in(wheel)]


def try_extra(extra: str, version: str, out: Path) -> list[str]:
    """Install armpy with an extra, an empty one for none, and run a model where it is installed."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder, "bin", "python")
        # The command line is added, as the trial runs a command.
        wanted = f"armpy[{','.join(sorted({'cli', *filter(None, [extra])}))}]=={version}"
        problems = install(folder, wanted, out)
        for backend in () if problems else BACKEND_IDS:
            command = read_digit(python, backend)
            ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            problem = wrong_in(ran.stdout, backend) if ran.returncode == 0 else ran.stderr.strip()
            problems += [f"{wanted} with {backend}: {problem}"] if problem else []
    print(f"{wanted}: {'failed' if problems else 'installed, and reads a digit right'}", flush=True)
    return problems


def try_backend(name: str, version: str, out: Path) -> list[str]:
    """Install a backend with the armpy that was built."""
    with tempfile.TemporaryDirectory() as folder:
        problems = install(folder, f"{name}=={version}", out)
    print(f"{name}=={version}: {'failed' if problems else 'installed'}", flush=True)
    return problems


def install(folder: str, wanted: str, out: Path) -> list[str]:
    """Make an environment in a folder, with a requirement out of the built files."""
    python = str(Path(folder, "bin", "python"))
    pip = [python, "-m", "pip"]
    return (
        run([sys.executable, "-m", "venv", folder])
        or run([*pip, "install", "--quiet", "--find-links", str(out.resolve()), wanted])
        or run([*pip, "check"])
    )


def write_bill_of_materials(
    extras: Sequence[str], version: str, out: Path, bill: Path
) -> list[str]:
    """Write the bill of materials of an environment with all extras that can be installed."""
    with tempfile.TemporaryDirectory() as folder:
        python = str(Path(folder, "bin", "python"))
        command = [sys.executable, "-m", "cyclonedx_py", "environment", python]
        command += ["--output-format", "JSON", "--output-file", str(bill)]
        return install(folder, f"armpy[{','.join(extras)}]=={version}", out) or run(command)


def run(command: Sequence[str]) -> list[str]:
    """Run a command; return its output if it fails, and nothing if it succeeds."""
    print("$", *command, flush=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [f"{' '.join(command)}\n{done.stdout}{done.stderr}"] if done.returncode else []


if __name__ == "__main__":
    raise SystemExit(main())
