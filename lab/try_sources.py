"""Unpacks source archives and has each pass its own tests, without the checkout.

Usage::

    python lab/try_sources.py [PROJECT ...] [--work DIR]

A PROJECT is a folder, such as extensions/onnx; without one, all that need no other engine are
tried. Archives and wheels are built once. What others publish is installed once, in an environment
that no test runs in; each project gets an environment of its own that sees it, with the wheels that
the project and its extra ``test`` declare, and no other one of armpy's. So a test that imports the
checkout, or an extension that its project does not declare, fails. Tests marked ``slow`` are left
out. Needs ``build``, ``setuptools`` and a package index. ``--work`` keeps everything in a folder;
what others publish is then not installed again.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import tomllib
import venv
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECTS = ("testing", "extensions/*", "backends/*")
"""Where projects are, below the checkout's root."""
LEFT_OUT = (
    "backends/litert",
    "backends/numba_acc",
    "backends/onnxruntime",
    "backends/openvino",
    "extensions/torch",
)
"""Projects that are tried when they are named: they need other engines, or more than minutes."""

_NOT_COPIED = shutil.ignore_patterns(
    "__pycache__", "*.egg-info", "build", ".cache", "dynamic_examples"
)
_OF_ARMPY = ("pyproject.toml", "setup.cfg", "README.md", "armpy", "backends")
"""What armpy's own wheel is built from."""
LICENSES = ("LICENSE", "NOTICE")
"""Files of the checkout's root that every distribution holds."""

Projects = dict[str, tuple[Path, dict[str, Any]]]  # Any: a table of TOML
"""Folder and ``project`` table by the distribution's name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, unpack, install and test; 1 if a project's tests fail."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("project", nargs="*", help="folders of projects")
    parser.add_argument("--work", type=Path, help="keep environments and archives here")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        work = options.work or Path(folder)
        projects = read_projects(ROOT)
        places = {name: _place(home) for name, (home, _) in projects.items()}
        usual = set(places.values()) - {".", *LEFT_OUT}
        names = [name for name, place in places.items() if place in (options.project or usual)]
        wanted = [Requirement(f"{name}[test]") for name in names]
        built = {*declared(wanted, projects), *names}
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            base = pool.submit(make_base, sorted(foreign(wanted, projects)), work / "base")
            for _ in pool.map(lambda name: build(projects[name][0], work), sorted(built)):
                pass
        failed = [name for name in names if not passes(name, base.result(), work)]
    print(f"failed: {', '.join(failed)}" if failed else f"{len(names)} source archives pass")
    return 1 if failed else 0


def read_projects(root: Path) -> Projects:
    """All projects of the checkout, armpy's own first."""
    folders = [root, *(path for place in PROJECTS for path in sorted(root.glob(place)))]
    files = [folder / "pyproject.toml" for folder in folders]
    files = [file for file in files if file.is_file()]
    tables = [(path.parent, tomllib.loads(path.read_text("utf-8"))["project"]) for path in files]
    return {table["name"]: (home, table) for home, table in tables}


def declared(requirements: Iterable[Requirement], projects: Projects) -> dict[str, set[str]]:
    """Names of the checkout's projects that requirements come to, with their extras."""
    extras_of: dict[str, set[str]] = {}
    waiting = list(requirements)
    while waiting:
        requirement = waiting.pop()
        if requirement.name not in projects:
            continue
        known = extras_of.setdefault(requirement.name, set())
        if not requirement.extras <= known or not known:
            known |= {*requirement.extras, ""}
            waiting += requirements_of(projects[requirement.name][1], known)
    return extras_of


def foreign(requirements: Iterable[Requirement], projects: Projects) -> set[str]:
    """What requirements come to of other publishers' distributions."""
    return {
        str(requirement)
        for name, extras in declared(requirements, projects).items()
        for requirement in requirements_of(projects[name][1], extras)
        if requirement.name not in projects
    }


def requirements_of(table: dict[str, Any], extras: Iterable[str]) -> Iterator[Requirement]:
    """A project's requirements with some extras, as far as they hold here."""
    optional = table.get("optional-dependencies", {})
    texts = [
        *table.get("dependencies", ()),
        *(t for name in extras for t in optional.get(name, ())),
    ]
    for requirement in map(Requirement, texts):
        if requirement.marker is None or requirement.marker.evaluate():
            yield requirement


def build(home: Path, work: Path) -> None:
    """Build a project's source archive, and its wheel from that, with what is installed here."""
    begin = time.monotonic()
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(work / "dist")]
    _run([*command, str(copy_project(home, work))])
    print(f"built {_place(home)} in {time.monotonic() - begin:.0f} s", flush=True)


def copy_project(home: Path, work: Path) -> Path:
    """Copy a project to build from, with the licence and the notice; return the copy's folder.

    Files that earlier builds have left in the checkout are not copied.
    """
    copy = work / "copies" / home.name
    names = [path.name for path in home.iterdir() if home != ROOT or path.name in _OF_ARMPY]
    names += [str(ROOT / name) for name in LICENSES]
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    for name in names:
        if (home / name).is_dir():
            shutil.copytree(home / name, copy / name, ignore=_NOT_COPIED)
        else:
            shutil.copy(home / name, copy)
    return copy


def make_base(requirements: Sequence[str], folder: Path) -> Path:
    """Make an environment with what others publish; return its folder of packages."""
    begin = time.monotonic()
    if not folder.exists():
        _run([sys.executable, "-m", "venv", str(folder)])
    _run([_python(folder), "-m", "pip", "install", "--quiet", *requirements])
    print(
        f"installed {len(requirements)} requirements in {time.monotonic() - begin:.0f} s",
        flush=True,
    )
    variables = {"base": str(folder), "platbase": str(folder)}
    return Path(sysconfig.get_path("purelib", "venv", variables))


def passes(name: str, base: Path, work: Path) -> bool:
    """Install a project's own wheels beside the base, and run its unpacked archive's tests."""
    begin = time.monotonic()
    place = work / "alone" / name
    shutil.rmtree(place, ignore_errors=True)
    venv.create(place / "environment", symlinks=True)
    packages = sysconfig.get_path(
        "purelib", "venv", {"base": str(place / "environment"), "platbase": str(place)}
    )
    Path(packages, "base.pth").write_text(f"{base}\n", "utf-8")
    python = _python(place / "environment")
    offline = ["--quiet", "--no-index", "--find-links", str(work / "dist")]
    _run([python, "-m", "pip", "install", *offline, f"{name}[test]"])
    (archive,) = (work / "dist").glob(f"{name.replace('-', '_')}-[0-9]*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(place, filter="data")
    source = place / archive.name.removesuffix(".tar.gz")
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("ARMPY_", "COV", "PYTEST", "PYTHON"))
    }
    environment["ARMPY_TESTS_KEPT"] = str(ROOT / ".cache" / "armpy-tests")
    done = subprocess.run(
        [python, "-P", "-m", "pytest", "-q", "tests"],
        cwd=source,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    (place / "output.txt").write_text(done.stdout, "utf-8")
    if done.returncode:
        print(done.stdout)
    summary = done.stdout.strip().rpartition("\n")[2]
    counts = re.sub(r" in [\d.]+s.*", "", summary)
    print(f"{name}: {counts}, {time.monotonic() - begin:.0f} s", flush=True)
    return done.returncode == 0


def _place(home: Path) -> str:
    """A project's folder, from the checkout's root."""
    return home.relative_to(ROOT).as_posix()


def _python(environment: Path) -> str:
    """The interpreter of an environment."""
    return str(environment / "bin" / "python")


def _run(command: Sequence[str]) -> None:
    """Run a command; end with its output if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    raise SystemExit(main())
