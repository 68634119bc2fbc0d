"""Looks closely at one backend; `armpy doctor` has it done in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.backend import BackendOption, IBackendInternal, OptionScope
from armpy.backend.options import check_options
from armpy.errors import ArmpyError, BackendError
from armpy.execution import RuntimeOptions
from armpy.ops.activation_layers import Activation, ActivationFunction
from armpy.ops.dense import FullyConnected
from armpy.ops.elementwise import BinaryOperation, ElementwiseBinary
from armpy.ops.operation import Operation
from armpy.plugins import BackendRegistry
from armpy.plugins.discovery.entry_points import find_entry_points
from armpy.plugins.discovery.references import load_reference
from armpy.plugins.proxy.figure_checks import check_figures
from armpy.plugins.proxy.guard import BackendProxy
from armpy.plugins.proxy.guarded_call import call_method
from armpy.tensor import TensorInfo
from armpy.testing.backend_under_test import BackendUnderTest
from armpy.testing.case import Case, CaseInput
from armpy.testing.judge import judge
from armpy.testing.patterns import judge_declared
from armpy.testing.result import CaseResult, Outcome
from armpy.types import REFERENCE_BACKEND_ID, DataType

EXAMINATION = f"{__name__}:examine_backend"
"""What a probe is to call."""

RAN, REFUSED, GIVEN_BACK, FAILED = "ran", "refused", "given back", "failed"
"""What can come of a trial; the last one only is a problem."""


def examine_backend(backend: IBackendInternal) -> dict[str, object]:
    """Ask a backend all it tells about itself, and run small networks on it, as the kit does.

    Returns
    -------
    dict
        Of the form of JSON. ``problems`` is empty if all is well.

    Raises
    ------
    BackendError
        If a property of the backend is not what the contract says.
    """
    guarded = BackendProxy(backend)
    problems = _why_unavailable(guarded)
    trials = [] if problems else _trials(BackendUnderTest(guarded.get_id(), _options(backend)))
    failed = [f"{t['operation']} {t['text']}" for t in trials if t["outcome"] == FAILED]
    problems += failed[:1]  # the others are among the trials
    problems += _why_without_figures(guarded)
    return {
        "version": guarded.version,
        "options": [_option(option) for option in guarded.options],
        "capabilities": {str(k): _plain(v) for k, v in guarded.get_capabilities().items()},
        "extensions": list(guarded.supported_extensions),
        "trials": trials,
        "problems": problems,
    }


def _why_unavailable(backend: BackendProxy) -> list[str]:
    """Why a backend cannot be used on this machine with its own defaults."""
    try:
        scopes = check_options(backend.options, {}, backend.get_id())
        options = scopes[OptionScope.RUNTIME]
        context = backend.for_runtime(options).create_backend_context(options)
        if context is not None:
            call_method(backend.get_id(), context, "close")
    except ArmpyError as error:
        return [str(error)]
    return []


def _why_without_figures(backend: BackendProxy) -> list[str]:
    """Why figures that a backend declares are not used."""
    problems = []
    for device in backend.wrapped.get_devices():  # whose form was checked when it was loaded
        try:
            if device.figures is not None:
                check_figures(device.figures, backend.get_id())
        except BackendError as error:
            problems.append(str(error))
    return problems


def _option(option: BackendOption) -> dict[str, object]:
    """What an option's declaration says."""
    return {
        "name": str(option.name),
        "default": _plain(option.default),
        "allowed": option.allowed,
        "scope": option.scope.value,
        "help": str(option.help),
    }


def _plain(value: object) -> object:
    """A value that JSON can hold."""
    return value if isinstance(value, bool | int | float | str) else repr(value)


def _trials(subject: BackendUnderTest) -> list[dict[str, str]]:
    """Run small networks, as the conformance kit does, and say what came of each."""
    results = {name: judge(subject, case) for name, case in _layers().items()}
    for pattern in subject.patterns:
        results[pattern.name] = judge_declared(subject, pattern.name, pattern)
    return [_trial(name, result) for name, result in results.items()]


def _trial(name: str, result: CaseResult) -> dict[str, str]:
    """What came of one network."""
    if result.outcome.is_bad:
        return {"operation": name, "outcome": FAILED, "text": f"failed: {result.text}"}
    if result.outcome is Outcome.PASSED:
        text = f"ran {result.text}".rstrip()
        return {"operation": name, "outcome": RAN, "text": text}
    outcome = REFUSED if result.outcome is Outcome.UNSUPPORTED else GIVEN_BACK
    return {"operation": name, "outcome": outcome, "text": f"{outcome}: {result.text}"}


def _layers() -> dict[str, Case]:
    """Layers to run, with answers worked out by hand."""
    vector = _input([5, 3])
    weights, bias = _input([[1, 2], [-1, 1]], True), _input([10, 20], True)
    addition = ElementwiseBinary(BinaryOperation.ADD)
    relu = Activation(ActivationFunction.RELU)
    return {
        "addition": _case(addition, [vector, _input([10, 8])], [15, 11]),
        "RELU": _case(relu, [_input([-5, 3])], [0, 3]),
        "FullyConnected": _case(FullyConnected(), [_input([[5, 3]]), weights, bias], [[21, 18]]),
    }


def _input(elements: object, is_constant: bool = False) -> CaseInput:
    """A float32 tensor that a layer reads."""
    array = np.array(elements, np.float32)
    return CaseInput(TensorInfo(array.shape, DataType.FLOAT32), array, is_constant)


def _case(operation: Operation, inputs: Sequence[CaseInput], expected: object) -> Case:
    """A layer with its answer."""
    right = np.array(expected, np.float32)
    info = TensorInfo(right.shape, DataType.FLOAT32)
    return Case(operation.name, operation, tuple(inputs), (info,), (right,))


def _options(backend: IBackendInternal) -> RuntimeOptions:
    """Options that find the backend, and CpuRef to compare it with."""
    registry = BackendRegistry()
    registry.register(backend.get_id(), lambda: backend)
    for candidate in find_entry_points()[0]:
        is_reference = candidate.backend_id == REFERENCE_BACKEND_ID
        if is_reference and backend.get_id() != REFERENCE_BACKEND_ID:
            loaded = load_reference(candidate.name)
            registry.register(REFERENCE_BACKEND_ID, loaded)  # type: ignore[arg-type]  # armpy's own
    return RuntimeOptions(registry=registry)
