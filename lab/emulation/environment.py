"""Python on an emulated 64-bit Arm processor.

Notes
-----
Debian's packages for arm64 are unpacked into a folder, and wheels for aarch64 into another one;
nothing is installed. ``qemu-aarch64`` runs the interpreter, system calls are the host's own.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PROCESSORS = ("max", "neoverse-n1", "cortex-a72")
"""What qemu calls a processor with everything, with dot products, and with neither."""

_EMULATOR = "qemu-aarch64"
_PACKAGES = ("python3:arm64", "libstdc++6:arm64")
"""The interpreter, and what wheels expect of a system."""

_WHEELS = ("numpy", "numba", "llvmlite", "pluggy", "packaging")
_TEST_WHEELS = ("click", "pillow", "pytest", "hypothesis")
_GLIBC = ("2_17", "2_27", "2_28")
_UNNEEDED = ("dpkg", "install-info", "perl", "tar", "mailcap", "mime-support", "media-types")
_DEPENDENCIES = ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")


class MissingError(Exception):
    """Something is not there that the environment is made of."""


@dataclass(frozen=True)
class Environment:
    """An interpreter for arm64 and its dependencies.

    Parameters
    ----------
    home : Path
        Holds ``root`` (Debian's files), ``site`` (unpacked wheels) and ``cache``.
    """

    home: Path

    @property
    def interpreter(self) -> Path | None:
        """Python for arm64, if it is there with what wheels need."""
        if not any((self.home / "root").glob("usr/lib/*/libstdc++.so.6")):
            return None
        interpreters = sorted((self.home / "root/usr/bin").glob("python3.[0-9]*[0-9]"))
        return interpreters[-1] if interpreters else None

    @property
    def is_complete(self) -> bool:
        """Whether it can be used as it is."""
        wheels = (self.home / "site" / name for name in ("numpy", "numba", "llvmlite"))
        return self.interpreter is not None and all(map(Path.is_dir, wheels))

    def command(self, processor: str, arguments: Sequence[str]) -> list[str]:
        """What runs Python on a processor: this checkout's packages, and the unpacked ones.

        Parameters
        ----------
        processor : str
            One of `PROCESSORS`, or another one that qemu knows.
        arguments : sequence of str
            Of Python.

        Raises
        ------
        MissingError
            If there is no emulator, or no interpreter.
        """
        emulator, interpreter = shutil.which(_EMULATOR), self.interpreter
        if emulator is None:
            raise MissingError(f"{_EMULATOR} is not installed (Debian's package qemu-user)")
        if interpreter is None:
            raise MissingError(f"no Python for arm64 in {self.home}: run 'setup' first")
        backends = [ROOT / "backends/numba_acc", ROOT / "backends/reference"]
        packages = [ROOT, ROOT / "testing", *backends, *sorted((ROOT / "extensions").glob("*/"))]
        path = os.pathsep.join(map(str, [*packages, self.home / "site"]))
        cache = os.environ.get("ARMPY_CACHE_DIR", str(self.home / "cache"))
        variables = [f"PYTHONPATH={path}", f"ARMPY_CACHE_DIR={cache}", "PYTHONDONTWRITEBYTECODE=1"]
        options = [word for item in variables for word in ("-E", item)]
        root = str(self.home / "root")
        return [emulator, "-cpu", processor, "-L", root, *options, str(interpreter), *arguments]


def default_environment() -> Environment:
    """The one in the folder for caches."""
    caches = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Environment(Path(caches) / "armpy-arm64")


def set_up(environment: Environment) -> None:
    """Make the missing parts: about 250 MB.

    Raises
    ------
    MissingError
        If this machine cannot make it.
    """
    if environment.is_complete:
        return
    for program in ("apt-get", "apt-cache", "dpkg", "dpkg-deb"):
        if shutil.which(program) is None:
            raise MissingError(f"{program} is not there: the environment is Debian's packages")
    environment.home.mkdir(parents=True, exist_ok=True)
    if environment.interpreter is None:
        _unpack_interpreter(environment.home)
    interpreter = environment.interpreter
    if interpreter is None:
        raise MissingError("Debian's packages had no Python")
    _unpack_wheels(environment.home, interpreter.name.removeprefix("python"))


def _unpack_interpreter(home: Path) -> None:
    """Download Debian's Python for arm64 and its dependencies, and unpack them."""
    known = run_program(["dpkg", "--print-foreign-architectures"]).split()
    if "arm64" not in [*known, run_program(["dpkg", "--print-architecture"]).strip()]:
        if os.geteuid() != 0:
            raise MissingError("only root can add an architecture: dpkg --add-architecture arm64")
        run_program(["dpkg", "--add-architecture", "arm64"])
    if os.geteuid() == 0:
        run_program(["apt-get", "update", "-qq"])
        if shutil.which(_EMULATOR) is None:
            run_program(["apt-get", "install", "-y", "-qq", "qemu-user"])
    without = [f"--no-{kind}" for kind in _DEPENDENCIES]
    listed = run_program(["apt-cache", "depends", "--recurse", *without, *_PACKAGES])
    names = sorted(set(re.findall(r"^(\S+):arm64$", listed, re.MULTILINE)))
    names = [name for name in names if not name.startswith(_UNNEEDED)]
    if not names:
        raise MissingError("apt knows no python3:arm64: run apt-get update")
    packages = home / "packages"
    packages.mkdir(exist_ok=True)
    run_program(["apt-get", "download", "-qq", *(f"{name}:arm64" for name in names)], packages)
    for package in packages.glob("*.deb"):
        run_program(["dpkg-deb", "-x", str(package), str(home / "root")])
    shutil.rmtree(packages)


def _unpack_wheels(home: Path, version: str) -> None:
    """Download wheels for aarch64, and unpack them."""
    short = version.replace(".", "")
    platforms = [f"--platform=manylinux_{glibc}_aarch64" for glibc in _GLIBC]
    wheels = home / "wheels"
    run_program(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(wheels)),
            *("--only-binary=:all:", "--implementation=cp", f"--python-version={version}"),
            *(f"--abi=cp{short}", "--abi=abi3", "--abi=none", "--platform=manylinux2014_aarch64"),
            *(*platforms, *_WHEELS, *_TEST_WHEELS),
        ]
    )
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(home / "site")
    shutil.rmtree(wheels)


def run_program(command: Sequence[str], folder: Path | None = None) -> str:
    """A program's output; its errors if it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing said"]
        raise MissingError(f"{' '.join(command[:4])} failed: {said[-1]}")
    return done.stdout


def is_native() -> bool:
    """Whether this machine is a 64-bit Arm one, and needs no emulator."""
    return platform.machine() in ("aarch64", "arm64")
