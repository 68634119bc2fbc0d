"""Commands that install more of armpy, by where the running armpy came from."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from armpy.core.shell import shell_command
from armpy.errors import full_path

_PACKAGE = Path(__file__).parents[1]
_FILE_URL = "file://"
_BEFORE_DRIVE = re.compile("^/(?=[A-Za-z]:)")


def install_command(projects: Mapping[str, str], package: Path = _PACKAGE) -> str:
    """Return the ``pip install`` command for some of armpy's projects.

    Parameters
    ----------
    projects : mapping of str to str
        Requirements, such as ``armpy-onnx`` and ``armpy[sign]``, with their projects' folders in a
        checkout; in the order in which they are installed.
    package : Path, optional
        The package `armpy` that runs. If it was installed from a checkout that is still there, the
        command installs from it; if from a wheel's file, from the folder of that file; otherwise
        from the package index. What it was installed from is recorded as PEP 610 says.
    """
    origin = _origin(package)
    if origin is None:
        return f"pip install {shell_command(projects)}"
    if origin.suffix == ".whl":
        return f"pip install {shell_command(['--find-links', str(origin.parent), *projects])}"
    start = "." if str(origin) == full_path(os.curdir) else str(origin)
    places = [
        os.path.join(start, os.path.normpath(folder)).removesuffix(f"{os.sep}.")
        + _extras(requirement)
        for requirement, folder in projects.items()
    ]
    return f"pip install {shell_command(places)}"


def restore_command(path: str, projects: Mapping[str, str], package: Path = _PACKAGE) -> str:
    """Return the command that restores a damaged file of installed projects.

    Parameters
    ----------
    path : str
        The file.
    projects, package
        As for `install_command`.
    """
    site = package.parent
    if _is_checkout(site) and Path(path).is_relative_to(site):
        return shell_command(["git", "-C", str(site), "checkout", "--", path])
    again = "pip install --force-reinstall --no-deps"
    return install_command(projects, package).replace("pip install", again, 1)


def _origin(package: Path) -> Path | None:
    """The checkout or the wheel's file that a package is of; None for the package index."""
    site = package.parent
    if _is_checkout(site):
        return site
    for record in site.glob("armpy-*.dist-info/direct_url.json"):
        url = str(json.loads(record.read_text("utf-8")).get("url", ""))
        # Of file:///C:/armpy, Windows' path has no slash in front.
        place = Path(_BEFORE_DRIVE.sub("", unquote(url.removeprefix(_FILE_URL))))
        if url.startswith(_FILE_URL) and (_is_checkout(place) or place.is_file()):
            return place
    return None


def _is_checkout(folder: Path) -> bool:
    return (folder / "pyproject.toml").is_file() and (folder / "extensions").is_dir()


def _extras(requirement: str) -> str:
    _, bracket, extras = requirement.partition("[")
    return bracket + extras
