"""Looks closely at one backend; `armpy doctor` has it done in a process of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from armpy.backend import BackendOption, IBackendInternal, OptionScope
from armpy.backend.options import check_options
from armpy.errors import ArmpyError
from armpy.graph import Value
from armpy.network import Network
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    ElementwiseBinary,
    FullyConnected,
)
from armpy.ops.operation import Array
from armpy.plugins import BackendRegistry
from armpy.plugins.entry_points import find_entry_points, load_entry_point
from armpy.plugins.guard import GuardedBackend
from armpy.records import dataclass
from armpy.runtime import Model, Runtime, RuntimeOptions
from armpy.tensor import TensorInfo
from armpy.types import REFERENCE_BACKEND_ID, DataType

EXAMINATION = f"{__name__}:examine_backend"
"""What a probe is to call."""

_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class Trial:
    """A network of one layer with a known answer.

    Parameters
    ----------
    name : str
        The layer's operation, for people.
    inputs : tuple of ndarray, float32
    expected : ndarray, float32
    add : callable
        Adds the layer to a network.
    """

    name: str
    inputs: tuple[Array, ...]
    expected: Array
    add: Callable[[Network], None]

    def build(self) -> Network:
        """The network."""
        net = Network(self.name)
        self.add(net)
        return net


def examine_backend(backend: IBackendInternal) -> dict[str, object]:
    """Ask a backend all it tells about itself, and run small networks on it.

    Returns
    -------
    dict
        Of the form of JSON. ``problems`` is empty if all is well.

    Raises
    ------
    BackendError
        If a property of the backend is not what the contract says.
    """
    guarded = GuardedBackend(backend)
    problems = _why_unavailable(guarded)
    trials = [] if problems else [_run_trial(backend, trial) for trial in _trials()]
    failed = [f"{t['operation']} {t['text']}" for t in trials if t["outcome"] == "failed"]
    problems += failed[:1]  # the others are among the trials
    return {
        "version": guarded.version,
        "options": [_option(option) for option in guarded.options],
        "capabilities": {str(k): _plain(v) for k, v in guarded.get_capabilities().items()},
        "extensions": list(guarded.supported_extensions),
        "trials": trials,
        "problems": problems,
    }


def _why_unavailable(backend: GuardedBackend) -> list[str]:
    """Why a backend cannot be used on this machine with its own defaults."""
    try:
        scopes = check_options(backend.options, {}, backend.backend_id)
        backend.create_backend_context(scopes[OptionScope.RUNTIME])
    except ArmpyError as error:
        return [str(error)]
    return []


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


def _trials() -> list[Trial]:
    """The networks to run, with answers worked out by hand."""
    relu = Activation(ActivationFunction.RELU)
    vector = np.array([5, 3], np.float32)

    def connect(net: Network) -> None:
        weights = net.constant(np.array([[1, 2], [-1, 1]], np.float32), name="weights")
        bias = net.constant(np.array([10, 20], np.float32), name="bias")
        net.output("y", net.add(FullyConnected(), _input(net, "x", (1, 2)), weights, bias))

    def add(net: Network) -> None:
        operation = ElementwiseBinary(BinaryOperation.ADD)
        net.output("y", net.add(operation, _input(net, "a", (2,)), _input(net, "b", (2,))))

    def clip(net: Network) -> None:
        net.output("y", net.add(relu, _input(net, "x", (2,))))

    return [
        Trial("addition", (vector, np.array([10, 8], np.float32)), _floats(15, 11), add),
        Trial("RELU", (np.array([-5, 3], np.float32),), _floats(0, 3), clip),
        Trial("FullyConnected", (vector.reshape(1, 2),), _floats(21, 18).reshape(1, 2), connect),
    ]


def _floats(*values: float) -> Array:
    """A float32 vector."""
    return np.array(values, np.float32)


def _input(net: Network, name: str, shape: tuple[int, ...]) -> Value:
    """Add a float32 input."""
    return net.input(name, TensorInfo(shape, DataType.FLOAT32))


def _run_trial(backend: IBackendInternal, trial: Trial) -> dict[str, str]:
    """Run one network and say what came of it."""
    outcome, text = "failed", ""
    inputs = tuple(array.copy() for array in trial.inputs)
    try:
        model = Model(trial.build(), _runtime(backend))
        outcome, text = _placed(GuardedBackend(backend), model)
        if outcome == "ran":
            outcome, text = _judge(trial, inputs, np.asarray(model(*inputs)))
    except ArmpyError as error:
        outcome, text = "failed", f"failed: {error}"
    return {"operation": trial.name, "outcome": outcome, "text": text}


def _runtime(backend: IBackendInternal) -> Runtime:
    """A runtime with the backend, and CpuRef for what it refuses."""
    registry = BackendRegistry()
    registry.register(backend.backend_id, lambda: backend)
    ids = [backend.backend_id]
    for candidate in find_entry_points():
        if candidate.backend_id == REFERENCE_BACKEND_ID and REFERENCE_BACKEND_ID not in ids:
            loaded = load_entry_point(candidate)
            registry.register(REFERENCE_BACKEND_ID, loaded)  # type: ignore[arg-type]  # armpy's own
            ids.append(REFERENCE_BACKEND_ID)
    return Runtime(RuntimeOptions(backends=ids, registry=registry))


def _placed(backend: GuardedBackend, model: Model) -> tuple[str, str]:
    """Whether the layer is on the backend; if not, whether that was said beforehand."""
    placement = model.placement
    if placement is None or set(placement.layers_by_backend) == {backend.backend_id}:
        return "ran", "ran"
    refusals = [r.text for r in placement.refusals if r.backend == backend.backend_id]
    (layer,) = model.graph.layers
    support = backend.get_layer_support().is_layer_supported(
        layer.operation, layer.input_infos, layer.output_infos
    )
    if support:
        return "failed", f"was said to be supported and could not be prepared: {refusals[0]}"
    return "refused", f"refused: {refusals[0]}"


def _judge(trial: Trial, inputs: tuple[Array, ...], actual: Array) -> tuple[str, str]:
    """Compare with the right answer, and look whether the inputs are as they were."""
    expected = trial.expected
    if actual.shape != expected.shape or not np.allclose(actual, expected, atol=_TOLERANCE):
        shown = f"{expected.ravel().tolist()}; got {actual.ravel().tolist()}"
        return "failed", f"gave wrong numbers: expected {shown}"
    if any((a != b).any() for a, b in zip(inputs, trial.inputs, strict=True)):
        return "failed", "changed its inputs"
    return "ran", "ran"
