"""Real directories with backend modules in them, written to disk for a test."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

from armpy.backend import BACKEND_API_VERSION
from armpy.plugins.modules import PRIVATE_PREFIX, forget_module

_MAJOR, _MINOR = (int(part) for part in BACKEND_API_VERSION.split("."))
NEXT_MINOR = f"{_MAJOR}.{_MINOR + 1}"
OTHER_MAJOR = f"{_MAJOR + 1}.{_MINOR}"

MODULE_SOURCE = """
from armpy.backend import DeviceInfo
from armpy_reference import ReferenceBackend
from armpy.types import DeviceType


class Backend(ReferenceBackend):
    def get_id(self):
        return {backend_id!r}

    def get_devices(self):
        return (DeviceInfo(device_type=DeviceType.ACCELERATOR),)


def get_backend_id():
    return {backend_id!r}


def get_version():
    return {version!r}


def backend_factory():
    return Backend()
"""


def module_source(
    backend_id: object = "TestDynamic",
    version: object = BACKEND_API_VERSION,
    *,
    without: str = "",
    extra: str = "",
) -> str:
    """The source of a backend module, a sound one by default.

    `backend_id`, `version`: what its entry points return.
    `without`: an entry point that it does not have.
    `extra`: what follows; it may define an entry point anew.
    """
    source = MODULE_SOURCE.format(backend_id=backend_id, version=version)
    if without:
        source += f"\ndel {without}\n"
    return source + dedent(extra)


def write_module(directory: Path, name: str, source: str | None = None, **files: str) -> Path:
    """Write a module's file, or a package if there are other files besides.

    `directory`: made if it is not there.
    `name`: of the module.
    `source`: of the file or of the package's ``__init__.py``; a sound backend by default.
    `files`: source by name of a package's submodules.
    """
    directory.mkdir(exist_ok=True)
    text = module_source() if source is None else dedent(source)
    if not files:
        path = directory / f"{name}.py"
        path.write_text(text)
        return path
    package = directory / name
    package.mkdir()
    for file, content in {**files, "__init__": text}.items():
        (package / f"{file}.py").write_text(dedent(content))
    return package


def private_modules() -> set[str]:
    """The names of directories' modules that are in ``sys.modules``, and groups without any."""
    names = {name for name in sys.modules if name.startswith(PRIVATE_PREFIX)}
    return names - {name.partition(".")[0] for name in names if "." in name}


def forget_private_modules() -> None:
    """Forget the modules of all directories, as closing their registries does."""
    for name in private_modules():
        forget_module(name)


def write_two_cards(folder: Path) -> str:
    """Write the backend ``TwoCards``, which has the devices ``card0`` and ``card1``."""
    devices = """
    def get_devices(self):
        return [DeviceInfo(name, DeviceType.GPU) for name in ("card0", "card1")]

    def for_runtime(self, options):
        return self  # both cards compute alike

    Backend.get_devices = get_devices
    Backend.for_runtime = for_runtime
    """
    path = folder / "two_cards"
    write_module(path, "test_cards_backend", module_source("TwoCards", extra=devices))
    return str(path)
