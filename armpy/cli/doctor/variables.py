"""Finds faults in the environment variables that armpy reads."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator

from armpy.cli.settings import VARIABLES, misspelt_variables, wrong_switches
from armpy.core import system_trace, vlog
from armpy.errors import InvalidArgumentError
from armpy.execution.setup.options import BACKENDS_VARIABLE
from armpy.model.archive import model_cache
from armpy.plugins import suggest_backend
from armpy.store.archive.kernel_packs import found_packs
from armpy.store.settings import CompilationCaching

_OF_A_SERVER = "ARMPY_SERVING_"
"""What the variables of `armpy_serving.kserve` begin with: one for each of its options."""

_TAGS = {vlog.VARIABLE: vlog.TAGS, system_trace.VARIABLE: system_trace.TAGS}


def variables_in_force() -> Iterator[str]:
    """Each variable that begins as armpy's do, with its value, and whether armpy has none such."""
    for name, value in sorted(os.environ.items()):
        if name.startswith("ARMPY_"):
            is_known = name in VARIABLES or name.startswith(_OF_A_SERVER)
            yield f"{name}={value}" + ("" if is_known else " (no variable of armpy)")


def variable_problems(backend_ids: Collection[str]) -> Iterator[str]:
    """What is wrong with variables of the environment, each with the fix.

    Parameters
    ----------
    backend_ids
        Backends that were found, which ``ARMPY_BACKENDS`` may name.
    """
    yield from misspelt_variables()
    yield from wrong_switches([model_cache.VARIABLE])
    for name, text in _wrong_values(backend_ids):
        end = "" if text.endswith("?") else "."
        yield f"{text}{end} Correct the environment variable {name}, or unset it"


def _wrong_values(backend_ids: Collection[str]) -> Iterator[tuple[str, str]]:
    """Variables whose values are wrong, and why."""
    try:
        CompilationCaching().resolved()
    except InvalidArgumentError as error:
        yield str(error.where), str(error).rstrip(".")
    for variable, tags in _TAGS.items():
        for word in re.split(r"[ ,:]+", os.environ.get(variable, "").strip(" ,:")):
            if word not in ("", "1", "all", *tags):
                yield variable, f"{variable} has no tag '{word}', only {', '.join(tags)}, 1 and all"
    for backend in os.environ.get(BACKENDS_VARIABLE, "").split(","):
        if backend.strip() and backend.strip() not in backend_ids:
            listed = ", ".join(sorted(backend_ids))
            yield (
                BACKENDS_VARIABLE,
                f"{BACKENDS_VARIABLE} names the backend '{backend.strip()}', which was not found "
                f"among {listed}. {suggest_backend(backend.strip(), backend_ids)}",
            )
    for file in found_packs():
        if file.reason:
            yield "ARMPY_KERNELS", f"kernels are not taken from {file.path}: {file.reason}"
