"""Examines one backend; `armpy doctor` does this in a separate process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np

from armpy.backend import IBackendInternal
from armpy.errors import ArmpyError, DeviceNotFoundError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph.network import Network
from armpy.ops import Activation, ActivationFunction, ElementwiseBinary, FullyConnected
from armpy.ops.tolerance import compare
from armpy.plugins import BackendRegistry
from armpy.plugins.discovery.candidate import MISSING_DEVICE
from armpy.plugins.proxy.availability import find_unavailability, shortened
from armpy.plugins.proxy.guard import BackendProxy
from armpy.store.settings import CompilationCaching
from armpy.tensor import TensorInfo
from armpy.types import REFERENCE_BACKEND_ID, DataType

EXAMINATION = f"{__name__}:examine_backend"
"""Entry point (``module:function``) that the separate process imports and calls."""

_PROBLEM = "problem:"
"""What lines of `get_diagnosis` begin with that are problems, as the contract says."""


def examine_backend(backend: IBackendInternal) -> dict[str, object]:
    """Query the properties of a backend, and run a small network on it.

    Returns a JSON-compatible dict: ``version``, ``details`` (pairs of a kind and a text),
    ``missing_device`` (why the device is missing, empty if it is present), and ``problem`` with
    ``fix``, both empty if all is well.
    """
    guarded = BackendProxy(backend)
    error = find_unavailability(guarded)
    missing_device = shortened(error) if isinstance(error, DeviceNotFoundError) else ""
    problem = "" if error is None or missing_device else str(error)
    fix = ""
    details = [
        ("option", f"{o.name} ({o.scope.value}, {o.allowed}, default {o.default!r}): {o.help}")
        for o in guarded.options
    ]
    details += [("capability", f"{k}={v}") for k, v in guarded.get_capabilities().items()]
    details += [("extension", name) for name in guarded.supported_extensions]
    for line in guarded.get_diagnosis():
        if line.startswith(_PROBLEM):
            problem = problem or line.removeprefix(_PROBLEM).strip()
        else:
            details.append(("diagnosis", line))
    if error is None:
        try:
            details += [("trial", text) for text in _run_network(backend)]
        except ArmpyError as failure:
            problem, fix = problem or f"trial: {failure}", "Report it to its author"
    return {
        "version": guarded.version,
        "details": details,
        MISSING_DEVICE: missing_device,
        "problem": problem,
        "fix": fix,
    }


def _run_network(backend: IBackendInternal) -> Iterator[str]:
    """Run three layers on a backend, or on CpuRef where it refuses them; say which ran where.

    Raises ArmpyError if a layer cannot be prepared or executed, or the answer is wrong.
    """
    net = Network("doctor")
    info = TensorInfo((1, 2), DataType.FLOAT32)
    weights, bias = np.array([[1, 2], [-1, 1]], np.float32), np.array([10, -40], np.float32)
    x, y = net.input("x", info), net.input("y", info)
    total = net.add(ElementwiseBinary(), x, y, name="addition")
    positive = net.add(Activation(ActivationFunction.RELU), total)
    net.output("z", net.add(FullyConnected(), positive, net.constant(weights), net.constant(bias)))
    inputs = {"x": np.array([[5, 3]], np.float32), "y": np.array([[-10, 8]], np.float32)}
    copies = {name: array.copy() for name, array in inputs.items()}
    # The sum is (-5, 11), its positive part (0, 11), the product (22 + 10, 11 - 40).
    expected = np.array([[32, -29]], np.float32)
    with closing(Runtime(_options(backend))) as runtime:
        network_id = runtime.load_network(net.build())
        answer = runtime.enqueue_workload(network_id, inputs)["z"]
        placement = runtime.get_network(network_id).placement
    if any((inputs[name] != array).any() for name, array in copies.items()):
        raise ArmpyError("an input was changed by the execution")
    if difference := compare(expected, answer, info):
        raise ArmpyError(f"the answer is wrong: {difference}")
    assert placement is not None  # as it was executed
    refusals = [refusal for refusal in placement.refusals if refusal.backend == backend.get_id()]
    for refusal in refusals:
        if refusal.support.error is not None:
            raise refusal.support.error
    yield f"{placement.layers_by_backend.get(backend.get_id(), 0)} of 3 layers ran on it"
    for refusal in refusals:
        yield f"{refusal.operation} refused: {refusal.text} ({refusal.code})"


def _options(backend: IBackendInternal) -> RuntimeOptions:
    """A runtime of a backend and CpuRef, which keeps nothing."""
    ids = [backend.get_id()]
    registry = BackendRegistry()
    registry.register(ids[0], lambda: backend)
    if REFERENCE_BACKEND_ID not in ids:
        discovered = BackendRegistry.discover()
        registry.register(REFERENCE_BACKEND_ID, lambda: discovered.get(REFERENCE_BACKEND_ID))
        ids.append(REFERENCE_BACKEND_ID)
    return RuntimeOptions(
        registry=registry, backends=ids, caching=CompilationCaching(enabled=False)
    )
