"""Judges one case: whether the backend does what it says, and whether its answer is right."""

from __future__ import annotations

import numpy as np

from armpy.backend import Support
from armpy.errors import ArmpyError, BackendCapabilityError
from armpy.graph import Graph
from armpy.ops.operation import Array
from armpy.testing.case import Case
from armpy.testing.result import CaseResult, Outcome
from armpy.testing.subject import Subject, refusal, run_once
from armpy.testing.tolerance import compare

_GARBAGE = (0x55, 0xAA)
"""Bytes that outputs are full of before the first and the second execution."""

ANSWERED_BY_CORE = "the core gave the answer without asking a backend"


class _FailureError(Exception):
    """A case that failed, and why."""


class _UnsupportedError(Exception):
    """A case that the backend does not take, and its reason."""


def judge(subject: Subject, case: Case) -> CaseResult:
    """Judge one case.

    Parameters
    ----------
    subject : Subject
    case : Case

    Returns
    -------
    CaseResult
        PASSED; UNSUPPORTED with the backend's own reason; FAILED if the backend said that it
        supports the layer and does not prepare or run it, or if its answer is wrong; CRASHED
        if it raises when it is asked, or raises something that the core does not contain.
    """
    try:
        outcome, text = Outcome.PASSED, _judge(subject, case)
    except _UnsupportedError as no:
        outcome, text = Outcome.UNSUPPORTED, str(no)
    except _FailureError as failure:
        outcome, text = Outcome.FAILED, _located(subject, case, failure)
    except Exception as error:  # noqa: BLE001 - the backend's code may raise anything
        outcome = Outcome.CRASHED
        text = _located(subject, case, f"{type(error).__name__}: {error}")
    return CaseResult(case.id, case.operation.name, case.data_type, outcome, text)


def _located(subject: Subject, case: Case, what: object) -> str:
    """A message that names backend, operation, shapes and types."""
    return f"{subject.backend_id} / {case}: {what}"


def _judge(subject: Subject, case: Case) -> str:
    """Judge a case; what to say about it if it passed."""
    graph = case.graph()
    feeds = case.feeds()
    layers = subject.layers(graph)
    for layer in layers:
        answer = subject.raw_support(layer)
        if not isinstance(answer, Support):
            raise _FailureError(f"is_layer_supported answered {answer!r}, not a Support")
    no = refusal(subject.support(layer) for layer in layers)
    if no:
        raise _UnsupportedError(no)
    answers = _run(subject, graph, feeds)
    _check_inputs(case, graph, feeds)
    _check_answers(case, answers, _expected(subject, case))
    return "" if layers else ANSWERED_BY_CORE


def _expected(subject: Subject, case: Case) -> tuple[Array, ...]:
    """The right outputs: worked out by hand, or CpuRef's."""
    if case.expected is not None:
        return case.expected
    return tuple(run_once(subject.reference, case.graph(), case.feeds()).values())


def _run(subject: Subject, graph: Graph, feeds: dict[str, Array]) -> list[list[Array]]:
    """The outputs of two executions, each into arrays full of other garbage."""
    runtime = subject.runtime
    try:
        network_id = runtime.load_network(graph)
    except BackendCapabilityError as error:
        if subject.refuses_to_compile(graph):
            raise _UnsupportedError("optimize_subgraph gave the layer back as failed") from error
        raise _FailureError(f"said supported, but failed to prepare: {error}") from error
    except ArmpyError as error:
        raise _FailureError(f"said supported, but failed to prepare: {error}") from error
    answers = []
    try:
        infos = [value.info for value in graph.outputs]
        for byte in _GARBAGE:
            given = {
                name: _garbage(byte, info.known_shape, info.data_type.dtype)
                for name, info in zip(graph.output_names, infos, strict=True)
                if info.is_fully_shaped
            }
            results = runtime.enqueue_workload(network_id, feeds, given)
            answers.append([results[name] for name in graph.output_names])
    except ArmpyError as error:
        raise _FailureError(f"said supported, but failed to run: {error}") from error
    finally:
        runtime.unload_network(network_id)
    return answers


def _garbage(byte: int, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """An array whose every byte is the same."""
    size_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    filled = np.full(size_bytes, byte & 1 if dtype == np.bool_ else byte, np.uint8)
    return filled.view(dtype).reshape(shape)


def _check_answers(case: Case, answers: list[list[Array]], expected: tuple[Array, ...]) -> None:
    """Compare the outputs of each execution with the right ones."""
    for number, (info, wanted) in enumerate(zip(case.outputs, expected, strict=True)):
        name = case.operation.outputs[min(number, len(case.operation.outputs) - 1)].name
        label = f"{name} (output {number})" if len(expected) > 1 else name
        first, second = (answer[number] for answer in answers)
        missed = _unwritten(first, second)
        if missed:
            raise _FailureError(
                f"{label} is not written completely: {missed} of {first.size} elements"
            )
        for run, actual in enumerate((first, second)):
            difference = compare(wanted, actual, info)
            if difference is not None:
                again = " when executed again" if run else ""
                raise _FailureError(f"{label}{again}: {difference}")


def _unwritten(first: Array, second: Array) -> int:
    """Number of elements that are still the garbage that was there before."""
    if not first.size or first.shape != second.shape:
        return 0
    before = [_garbage(byte, first.shape, first.dtype) for byte in _GARBAGE]
    kept = [
        (array.reshape(-1).view(np.uint8) == old.reshape(-1).view(np.uint8))
        .reshape(first.size, -1)
        .all(axis=1)
        for array, old in zip((first, second), before, strict=True)
    ]
    return int(np.count_nonzero(kept[0] & kept[1]))


def _check_inputs(case: Case, graph: Graph, feeds: dict[str, Array]) -> None:
    """Check that nothing was written to what may only be read."""
    for name, right in case.feeds().items():
        if feeds[name].tobytes() != right.tobytes():
            raise _FailureError(f"the input '{name}' was changed by the execution")
    (layer,) = graph.layers
    for value, item in zip(layer.inputs, case.inputs, strict=False):
        if value is None or item is None or value.data is None:
            continue
        if value.data.tobytes() != item.data.tobytes():
            raise _FailureError(f"the constant '{value.name}' was changed")
