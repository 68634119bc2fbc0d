"""Examine one backend; `armpy doctor` does this in a separate process."""

from __future__ import annotations

from armpy.backend import IBackendInternal
from armpy.cli.doctor.trials import FAILED, run_trials
from armpy.errors import BackendError, DeviceNotFoundError
from armpy.plugins.discovery.candidate import MISSING_DEVICE
from armpy.plugins.proxy.availability import find_unavailability, shortened
from armpy.plugins.proxy.figures import check_figures
from armpy.plugins.proxy.guard import BackendProxy

EXAMINATION = f"{__name__}:examine_backend"
"""Entry point (``module:function``) that the separate process imports and calls."""

_PROBLEM = "problem:"
"""What lines of `get_diagnosis` begin with that are problems, as the contract says."""


def examine_backend(backend: IBackendInternal) -> dict[str, object]:
    """Query all properties of a backend, and run small networks on it.

    Returns a JSON-compatible dict. ``problems``: messages, empty if there are none.
    ``missing_device``: why the device is missing, empty if it is present.
    """
    guarded = BackendProxy(backend)
    error = find_unavailability(guarded)
    missing_device = shortened(error) if isinstance(error, DeviceNotFoundError) else ""
    problems = [] if error is None or missing_device else [str(error)]
    trials = run_trials(backend) if error is None else []
    failed = [f"{t['operation']} {t['text']}" for t in trials if t["outcome"] == FAILED]
    problems += failed[:1]  # the others are among the trials
    problems += _figure_problems(guarded)
    diagnosis = [*guarded.get_diagnosis()]
    marked = [line for line in diagnosis if line.startswith(_PROBLEM)]
    problems += [line.removeprefix(_PROBLEM).strip() for line in marked]
    return {
        "version": guarded.version,
        "options": [
            {
                "name": str(option.name),
                "default": _plain(option.default),
                "allowed": option.allowed,
                "scope": option.scope.value,
                "help": str(option.help),
            }
            for option in guarded.options
        ],
        "capabilities": {str(k): _plain(v) for k, v in guarded.get_capabilities().items()},
        "extensions": list(guarded.supported_extensions),
        "diagnosis": [line for line in diagnosis if line not in marked],
        MISSING_DEVICE: missing_device,
        "trials": trials,
        "problems": problems,
    }


def _figure_problems(backend: BackendProxy) -> list[str]:
    """Return the errors of declared figures, which the guard would replace by None."""
    problems = []
    for device in backend.wrapped.get_devices():
        try:
            if device.figures is not None:
                check_figures(device.figures, backend.get_id())
        except BackendError as error:
            problems.append(str(error))
    return problems


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | float | str) else repr(value)
