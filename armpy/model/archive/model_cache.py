"""Model cache: a model that has been loaded before starts from a compiled model the next time.

A file of the cache is named by everything that its contents depend on: the contents of the
model file, the arguments of `armpy.load`, armpy and the environment that it finds backends and
options in, and the machine. So none is ever out of date; entries no longer requested go when
there is no room.
"""

from __future__ import annotations

import os
import sys
from hashlib import sha256
from typing import TYPE_CHECKING

from armpy import __version__
from armpy.core.file_digest import content_digest
from armpy.core.file_ownership import cache_folder, choices_state
from armpy.plugins.discovery.environment import environment_digest
from armpy.store.owned_files import SWITCH_VARIABLE

# An import here slows every start of a model.
if TYPE_CHECKING:
    from armpy.execution.steps.control_flow import Shapes
    from armpy.model.load_request import LoadRequest

VARIABLE = "ARMPY_MODEL_CACHE"
"""Environment variable that switches the cache ``on`` or ``off``; left out, it is on for installed
packages and off where armpy's own code is being worked on, as that has no version."""

FOLDER = "models"
"""Of armpy's cache directory."""

SUFFIX = ".armpy"

SENT_SUFFIX = ".model"
"""Of a model's own file that was sent from elsewhere, and is named by its SHA-256."""

LIMIT_BYTES = 4 << 30
"""Of all files together."""

NODE_FOLDER = "node"
"""Of armpy's cache directory: models that the processes of one node share."""

NODE_LIMIT_BYTES = 16 << 30
"""Of all files of a node together; the least recently used go. Mapped ones stay readable."""

_ORDINARY = ("ARMPY_DUMP_GRAPHS", "ARMPY_SYSTEM_TRACE", "ARMPY_VLOG")
_INSTALLED = ("site-packages", "dist-packages")


def is_on() -> bool:
    """Return whether models are kept."""
    switch = os.environ.get(VARIABLE, "").strip().lower()
    if os.environ.get(SWITCH_VARIABLE, "").strip().lower() == "off" or switch == "off":
        return False
    return switch == "on" or any(f"{os.sep}{name}{os.sep}" in __file__ for name in _INSTALLED)


def cached_path(request: LoadRequest) -> str | None:
    """Return where the compiled model of a request is or would be; None if it is not kept.

    Only models loaded by a path and without objects of the application's own are stored. The path
    depends on the model file's contents, which are read at each call: only they prove
    that a file is unchanged.
    """
    path = request.path
    asked = request.options.cache_key()
    if path is None or asked is None or not is_on():
        return None
    name = os.fspath(path)
    if isinstance(name, bytes):
        return None
    # A process that has not imported it does not tune.
    tuning = sys.modules.get("armpy.backend.tuning")
    if tuning is not None and tuning.requested_tuning() is not None:
        return None
    if any(map(os.environ.get, _ORDINARY)):
        return None
    try:
        # Its entry would be larger than a quarter, too, and nothing that large is kept.
        if os.stat(name).st_size > LIMIT_BYTES // 4:
            return None
        contents = content_digest(name)
        folder = os.path.join(cache_folder(), FOLDER)
        environment = environment_digest(request.installed)
    except (OSError, RuntimeError, ValueError):
        # No such file, a name that no file can have, or a deleted working directory: loading
        # without the cache succeeds, or raises the error.
        return None
    affinity = getattr(os, "sched_getaffinity", None)
    cores = sorted(affinity(0)) if affinity is not None else os.cpu_count()
    machine = (*_system_and_machine(), cores)
    ending = os.path.splitext(name)[1].lower()  # selects the front-end where contents do not
    parts = (contents, ending, asked, __version__, sys.version, machine, choices_state())
    digest = sha256(repr(parts).encode(errors="surrogatepass"))
    digest.update(environment)
    return os.path.join(folder, f"{digest.hexdigest()[:32]}{SUFFIX}")


def _system_and_machine() -> tuple[str, ...]:
    """Names and versions, without `platform`, which is slow to import."""
    if hasattr(os, "uname"):
        return (*os.uname()[1:],)
    # Windows sets these for each process.
    return tuple(os.environ.get(name, "") for name in ("COMPUTERNAME", "PROCESSOR_IDENTIFIER"))


def shapes_path(
    path: str,  # of the model itself, as `cached_path` gave it
    shapes: Shapes,
) -> str:
    """Return where the programs of an open model are for some input shapes."""
    digest = sha256(repr(shapes).encode()).hexdigest()
    return f"{path.removesuffix(SUFFIX)}-{digest[:16]}{SUFFIX}"
