"""Small networks that `armpy doctor` runs on a backend, with answers worked out by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import field

import numpy as np
import numpy.typing as npt

from armpy.backend import IBackendInternal, PreparationRequest, ReasonCode, Support
from armpy.compiler import Placement
from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.ops import Activation, ActivationFunction, ElementwiseBinary, FullyConnected, MemCopy
from armpy.ops.operation import Operation
from armpy.ops.tolerance import compare
from armpy.plugins import BackendRegistry
from armpy.plugins.discovery.discover import find_entry_points
from armpy.plugins.discovery.references import load_reference
from armpy.plugins.proxy.guard import BackendProxy
from armpy.plugins.proxy.guarded_call import ask_backend
from armpy.store.settings import CompilationCaching
from armpy.tensor import TensorInfo
from armpy.types import REFERENCE_BACKEND_ID, BackendId, DataType

RAN, REFUSED, GIVEN_BACK, FAILED = "ran", "refused", "given back", "failed"
"""Outcomes of a trial; only the last one is a problem."""

COMMAND = re.compile(r"\bpip install [\w.\[\]-]+( [\w.\[\]-]+)*")
"""A command that a backend's reason names."""

_UNWRITTEN = -77.0
"""Elements of an output before the execution; no answer has one."""

_FOLLOWING = "RELU"
"""Operation that follows a layer that the backend declined alone."""

_PATTERNS = "conformance_patterns"
"""Method of backends that take layers in patterns of their own, which the conformance kit runs."""


class _TrialError(Exception):
    """A fault of the backend in a trial."""


Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer, its inputs and constants, and its output, which has no negative element."""

    name: str
    operation: Operation
    inputs: tuple[Floats, ...]
    expected: Floats
    constants: tuple[Floats, ...] = field(default=())

    def graph(self, *, with_relu: bool) -> Graph:
        net = Network(self.name)
        values = [
            net.input(f"x{number}", TensorInfo(array.shape, DataType.FLOAT32))
            for number, array in enumerate(self.inputs)
        ]
        values += [net.constant(array) for array in self.constants]
        output = net.add(self.operation, *values, name=self.name)
        if with_relu:
            output = net.add(Activation(ActivationFunction.RELU), output, name=_FOLLOWING)
        net.output("y", output)
        return net.build()


def run_trials(backend: IBackendInternal) -> list[dict[str, str]]:
    """Run each network on a backend, and on CpuRef if the backend does not take its layer.

    Each trial has the keys ``operation``, ``outcome`` and ``text``.
    """
    ids = [backend.get_id()]
    registry = BackendRegistry()
    registry.register(ids[0], lambda: backend)
    for candidate in find_entry_points()[0]:
        if candidate.backend_id == REFERENCE_BACKEND_ID and REFERENCE_BACKEND_ID not in ids:
            loaded = load_reference(candidate.name)
            registry.register(REFERENCE_BACKEND_ID, loaded)  # type: ignore[arg-type]  # armpy's own
            ids.append(REFERENCE_BACKEND_ID)
    nothing_kept = CompilationCaching(enabled=False)
    options = RuntimeOptions(registry=registry, backends=ids, caching=nothing_kept)
    guarded, takes_patterns = BackendProxy(backend), hasattr(backend, _PATTERNS)
    trials = []
    first: dict[str, str] = {}  # the first layer that failed in this way, by the text
    with closing(Runtime(options)) as runtime:
        for layer in _layers():
            outcome, text = _try(runtime, guarded, layer, takes_patterns=takes_patterns)
            name = first.setdefault(text, layer.name)
            if outcome == FAILED and name != layer.name:
                text = f"{FAILED} as {name}"
            trials.append({"operation": layer.name, "outcome": outcome, "text": text})
    return trials


def _layers() -> Iterator[_Layer]:
    vector = _floats([5, 3])
    weights, bias = _floats([[1, 2], [-1, 1]]), _floats([10, 20])
    relu = Activation(ActivationFunction.RELU)
    yield _Layer("addition", ElementwiseBinary(), (vector, _floats([10, 8])), _floats([15, 11]))
    yield _Layer("RELU", relu, (_floats([-5, 3]),), _floats([0, 3]))
    yield _Layer(
        "FullyConnected",
        FullyConnected(),
        (vector[None],),
        _floats([[21, 18]]),
        (weights, bias),
    )


def _floats(elements: object) -> Floats:
    return np.array(elements, np.float32)


def _try(
    runtime: Runtime, backend: BackendProxy, layer: _Layer, *, takes_patterns: bool
) -> tuple[str, str]:
    """Outcome of a layer alone, or followed by a RELU if it does not run on the backend alone."""
    try:
        (asked,) = layer.graph(with_relu=False).layers
        question = asked.operation, asked.input_infos, asked.output_infos
        supports = backend.get_layer_support(PreparationRequest()).is_layer_supported
        if not (support := ask_backend(backend.get_id(), Support, lambda: supports(*question))):
            code = support.code.value if support.code is not None else "no code"
            if _run(runtime, backend.get_id(), layer, with_relu=True) is None:
                return RAN, f"{RAN} followed by {_FOLLOWING}, as it was refused alone"
            return REFUSED, f"{REFUSED}: {support.text or 'no reason given'} ({code})"
        reason = _run(runtime, backend.get_id(), layer, with_relu=False)
        if reason is None:
            return RAN, RAN
        if _run(runtime, backend.get_id(), layer, with_relu=True) is None:
            return RAN, f"{RAN} followed by {_FOLLOWING}, as it was declined alone"
    except (ArmpyError, _TrialError) as error:
        return FAILED, f"{FAILED}: {error}"
    if takes_patterns:
        return GIVEN_BACK, f"{GIVEN_BACK}: {reason}"
    if COMMAND.search(reason):
        return FAILED, f"{FAILED}: {reason}"
    return FAILED, (
        f"{FAILED}: {reason.rstrip('.')}. get_layer_support accepts the layer, but the backend "
        f"took it in no network: neither alone nor followed by {_FOLLOWING}"
    )


def _run(runtime: Runtime, backend: BackendId, layer: _Layer, *, with_relu: bool) -> str | None:
    """Execute a layer and check its answer; why it ran elsewhere, or None if it did not."""
    network_id = runtime.load_network(layer.graph(with_relu=with_relu))
    inputs = {f"x{number}": array.copy() for number, array in enumerate(layer.inputs)}
    output = np.full_like(layer.expected, _UNWRITTEN)
    try:
        answer = runtime.enqueue_workload(network_id, inputs, {"y": output})["y"]
        placement = runtime.get_network(network_id).placement
    finally:
        runtime.unload_network(network_id)
    for (name, array), original in zip(inputs.items(), layer.inputs, strict=True):
        if array.tobytes() != original.tobytes():
            raise _TrialError(f"the input '{name}' was changed by the execution")
    if answer.shape == layer.expected.shape and (missed := np.count_nonzero(answer == _UNWRITTEN)):
        size = layer.expected.size
        raise _TrialError(f"the output is not written completely: {missed} of {size} elements")
    info = TensorInfo(layer.expected.shape, DataType.FLOAT32)
    if difference := compare(layer.expected, answer, info):
        raise _TrialError(str(difference))
    return _why_elsewhere(placement, backend, layer.name)


def _why_elsewhere(placement: Placement | None, backend: BackendId, name: str) -> str | None:
    """Why a layer did not run on a backend; None if it did."""
    if placement is None:
        return "no layer was executed"
    if any(
        name in (layer.layer, *layer.origins)
        for layer in placement.layers
        if layer.backend == backend and layer.operation != MemCopy.__name__
    ):
        return None
    for refusal in placement.refusals:
        if refusal.backend == backend and refusal.layer == name:
            if refusal.code == ReasonCode.PREPARATION.value:
                raise _TrialError(f"said supported, but failed to prepare: {refusal.text}")
            return refusal.text
    return "no reason given"
