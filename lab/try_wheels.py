"""Builds armpy's wheels, installs them in fresh environments, and has them run a model.

Usage::

    python lab/try_wheels.py [--split] [--python PATH ...] [--wheels DIR]

Without ``--split`` there is one wheel, which holds both backends. With it there are three, as the
backends would be published: the core, armpy-reference and armpy-numba-acc. The core's project is
made here, of the one that is written down, so that nothing is stated twice. Needs the package
``build`` and a package index; tries every Python from 3.11 to 3.14 that it finds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
BACKENDS = {"armpy-reference": "backends/reference", "armpy-numba-acc": "backends/numba_acc"}
BACKEND_IDS = ("CpuRef", "NumbaAcc")
DIGITS = ROOT / "examples" / "digits"
MINORS = (11, 12, 13, 14)

_OF_BACKENDS = re.compile(
    r'^\[project\.entry-points\."armpy\.(?:backends|commands|programs)"\]\n(?:\w.*\n)*\n?',
    re.MULTILINE,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, install and run; 1 if anything goes wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--split", action="store_true", help="three wheels, not one")
    parser.add_argument("--python", action="append", type=Path, help="only this interpreter")
    parser.add_argument("--wheels", type=Path, help="keep the wheels here")
    options = parser.parse_args(arguments)
    pythons = options.python or find_pythons()
    with tempfile.TemporaryDirectory() as folder:
        place = options.wheels or Path(folder, "wheels")
        wheels = build_all(place, Path(folder, "core"), is_split=options.split)
        print(
            *(f"built {wheel.name}, {wheel.stat().st_size:,} bytes" for wheel in wheels), sep="\n"
        )
        problems = [try_in(python, wheels, Path(folder)) for python in pythons]
    for minor in MINORS:
        if not any(f"3.{minor}" == version_of(python) for python in pythons):
            print(f"Python 3.{minor}: not found, not tried")
    return 1 if any(problems) else 0


def build_all(place: Path, core: Path, *, is_split: bool) -> list[Path]:
    """Build every wheel.

    Parameters
    ----------
    place : Path
        Where they go.
    core : Path
        A folder that is not there yet, for the core's project.
    is_split : bool
        Whether the backends get wheels of their own.
    """
    projects = [ROOT]
    if is_split:
        make_core_project(core)
        projects = [core, *(ROOT / folder for folder in BACKENDS.values())]
    place.mkdir(parents=True, exist_ok=True)
    for project in projects:
        command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(place), str(project)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{project} cannot be built:\n{done.stdout}{done.stderr}")
    return sorted(place.glob("*.whl"))


def make_core_project(folder: Path) -> None:
    """Write the project of armpy without its backends, on which it depends instead."""
    skipped = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "armpy", folder / "armpy", ignore=skipped)
    for name in ("README.md", "LICENSE", "NOTICE", "setup.cfg"):
        shutil.copy(ROOT / name, folder)
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    (folder / "pyproject.toml").write_text(core_project(project), "utf-8")


def core_project(text: str) -> str:
    """The core's ``pyproject.toml``, made of that of armpy with both backends.

    The backends' folders, in which it looks for packages as well, are not beside it.
    """
    version = tomllib.loads(text)["project"]["version"]
    needed = "".join(f'    "{name}=={version}",\n' for name in BACKENDS)
    text = re.sub(r'^    "numba[^"]*",\n', needed, text, count=1, flags=re.MULTILINE)
    return _OF_BACKENDS.sub("", text)


def try_in(python: Path, wheels: Sequence[Path], folder: Path) -> str:
    """Install wheels in a fresh environment and run a model.

    Returns
    -------
    str
        What goes wrong; empty if nothing does.
    """
    begin = time.monotonic()
    place = folder / f"python{version_of(python)}"
    core = next(wheel for wheel in wheels if wheel.name.startswith("armpy-"))
    own = place / "bin" / "python"
    commands = [
        [str(python), "-m", "venv", str(place)],
        [str(own), "-m", "pip", "install", "--quiet", f"{core}[cli]", *map(str, wheels)],
        [str(own), "-m", "pip", "check"],
        *(read_digit(own, backend) for backend in BACKEND_IDS),
    ]
    environment = {**os.environ, "ARMPY_CACHE_DIR": str(place / "cache")}
    problem = ""
    for command in commands:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            problem = f"{' '.join(command[1:])} fails:\n{done.stdout}{done.stderr}"
        elif "--backend" in command:
            problem = wrong_in(done.stdout, command[-1])
        if problem:
            break
    text = problem or f"installed, and a digit read right, in {time.monotonic() - begin:.0f} s"
    print(f"Python {version_of(python)}: {text}", flush=True)
    shutil.rmtree(place, ignore_errors=True)
    return problem


def read_digit(python: Path, backend: str) -> list[str]:
    """The command that reads the picture of a seven on a backend; see `wrong_in`."""
    model, picture = DIGITS / "digits_int8.tflite", DIGITS / "pictures" / "seven.png"
    command = [str(python), "-m", "armpy", "run", str(model), "--json", "--image", str(picture)]
    return [*command, "--backend", backend]


def wrong_in(output: str, backend: str) -> str:
    """The fault of ``armpy run --json`` of a seven on a backend; empty if there is none."""
    document = json.loads(output)
    digit = document["outputs"][0]["classes"][0]["index"]
    if digit != 7:
        return f"the digit was read as {digit}"
    backends = [*document["layers_by_backend"]]
    return "" if backends == [backend] else f"it ran on {', '.join(backends)}"


def find_pythons() -> list[Path]:
    """An interpreter of each version, on the path or below pyenv's folder."""
    roots = [*Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions").glob("3.*")]
    interpreters = []
    for minor in MINORS:
        places = [root / "bin" / "python" for root in roots if root.name.startswith(f"3.{minor}.")]
        on_path = shutil.which(f"python3.{minor}")
        candidates = [*places, *([Path(on_path)] if on_path else [])]
        working = [place for place in candidates if version_of(place) == f"3.{minor}"]
        interpreters += working[:1]
    return interpreters


def version_of(python: Path) -> str:
    """Such as ``3.12``; empty if it cannot be run."""
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


if __name__ == "__main__":
    raise SystemExit(main())
