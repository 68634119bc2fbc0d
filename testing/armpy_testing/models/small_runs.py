"""Runs of models that came out of damaged files."""

from __future__ import annotations

import time

import numpy as np

import armpy
from armpy.errors import ArmpyError, BackendCapabilityError, BackendError, ParserError
from armpy.execution import Runtime
from armpy.model import Model

LARGEST_RUN_BYTES = 1 << 20
MEMORY_LIMIT_BYTES = 64 << 20
TIME_LIMIT_S = 2.0
"""Of the processor, for loading a file."""


def fault_in(data: bytes, front_end: str, runtime: Runtime) -> str:
    """Load a file and run it if it is small; return the fault in the outcome, or nothing."""
    started = time.process_time()
    try:
        with armpy.load(
            data, front_end=front_end, memory_limit_bytes=MEMORY_LIMIT_BYTES, runtime=runtime
        ) as model:
            duration = time.process_time() - started
            run_if_small(model)
    except ParserError as error:
        duration = time.process_time() - started
        if not error.where:
            return "an error without a place"
    except BackendCapabilityError as error:
        # StandIn layers have no backend; the file is not damaged.
        return "" if "StandIn" in str(error) else str(error)
    except Exception as error:  # noqa: BLE001  # any other error is what is looked for
        return f"{type(error).__name__}: {error}"
    return "" if duration < TIME_LIMIT_S else f"it took {duration:.1f} s"


def run_if_small(model: Model) -> str:
    """Run a model on ones, if its inputs are small.

    Returns
    -------
    str
        "loaded" if it is not run, "ran", or "failed" if it raised an `ArmpyError`. Other errors,
        and those of a backend, pass through.
    """
    infos = [spec.info for spec in model.inputs]
    if any(info.shape is None for info in infos):
        return "loaded"
    shapes = [tuple(2 if dim is None else dim for dim in info.shape or ()) for info in infos]
    if sum(int(np.prod(shape, dtype=float)) for shape in shapes) * 8 > LARGEST_RUN_BYTES:
        return "loaded"
    pairs = zip(infos, shapes, strict=True)
    try:
        with np.errstate(all="ignore"):
            model(*(np.ones(shape, info.data_type.dtype) for info, shape in pairs))
    except BackendError:
        raise
    except ArmpyError:
        return "failed"
    return "ran"
