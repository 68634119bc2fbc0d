"""Options of `armpy.load` hold for compiled models as for others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy import Model, NetworkProperties, Runtime, RuntimeOptions
from armpy.core.system_trace import set_system_trace
from armpy.errors import ArmpyError, InvalidArgumentError, MemoryLimitError
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.ops import FullyConnected, Softmax
from armpy_testing.models.control_flow import doubling, loop
from armpy_testing.models.networks import ADD, f32, floats
from tests.support.prepared_models import inputs_of, quantized, save_two_inputs, two_inputs

pytest.importorskip("numba", reason="Numba is not installed")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_two_inputs(tmp_path_factory.mktemp("options") / "two.armpy")


def outputs(model: Model) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in model.run(inputs_of()).items()}


@pytest.fixture(scope="module")
def expected() -> dict[str, bytes]:
    return outputs(Model(two_inputs()))


@pytest.mark.parametrize(
    "options",
    [
        {"num_threads": 1},
        {"on_fallback": "allow"},
        {"memory_limit_bytes": 1 << 20},
        {"preference": "preference"},
        {"quantize_inputs": True},
        {"code": "trusted"},
        {"trusted_keys": []},
    ],
    ids=str,
)
def test_what_asks_for_nothing_else_stays_light(
    options: dict[str, object], path: Path, expected: dict[str, bytes]
) -> None:
    model = armpy.load(path, **options)  # type: ignore[arg-type]
    assert model.is_light
    assert outputs(model) == expected


@pytest.mark.parametrize(
    "options",
    [
        {"backends": ["NumbaAcc", "CpuRef"]},
        {"on_fallback": "warn"},
        {"on_fallback": "error"},
        {"preference": "fastest"},
        {"code": "never"},
        {"properties": NetworkProperties(profiling=True)},
    ],
    ids=str,
)
def test_what_asks_for_more_is_ordinary(
    options: dict[str, object], path: Path, expected: dict[str, bytes]
) -> None:
    model = armpy.load(path, **options)  # type: ignore[arg-type]
    assert not model.is_light
    assert outputs(model) == expected


@pytest.mark.parametrize(
    "name", ["ARMPY_BACKENDS", "ARMPY_DUMP_GRAPHS", "ARMPY_SYSTEM_TRACE", "ARMPY_VLOG"]
)
def test_what_the_environment_asks_for_is_done(
    name: str, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = {"ARMPY_BACKENDS": "CpuRef", "ARMPY_DUMP_GRAPHS": str(tmp_path)}
    monkeypatch.setenv(name, value.get(name, "all"))
    set_system_trace("")  # read already: this process writes no marks
    model = armpy.load(path)
    assert not model.is_light
    placement = model.placement
    assert placement is not None
    backends = {layer.backend for layer in placement.layers}
    assert backends == ({"CpuRef"} if name == "ARMPY_BACKENDS" else {"NumbaAcc"})
    assert bool(list(tmp_path.glob("*.dot"))) == (name == "ARMPY_DUMP_GRAPHS")


def test_the_reference_alone_runs_the_graph(path: Path) -> None:
    model = armpy.load(path, backends=["CpuRef"])
    with Model(two_inputs(), Runtime(RuntimeOptions(backends=["CpuRef"]))) as reference:
        assert outputs(model) == outputs(reference)
    placement = model.placement
    assert placement is not None
    assert {layer.backend for layer in placement.layers} == {"CpuRef"}


def test_a_runtime_that_is_given_is_used(path: Path, expected: dict[str, bytes]) -> None:
    with Runtime(RuntimeOptions(backends=["NumbaAcc"])) as runtime:
        with armpy.load(path, runtime=runtime) as model:
            assert model.runtime is runtime
            assert outputs(model) == expected
        assert not runtime.is_closed


@pytest.mark.parametrize(
    "options",
    [
        {"num_threads": 0},
        {"num_threads": "2"},
        {"num_threads": 1 << 40},
        {"on_fallback": "never"},
        {"preference": "slow"},
        {"backends": ["None"]},
        {"backends": "NumbaAcc"},
        {"code": "always"},
        {"code": ""},
        {"trusted_keys": ["none"]},
    ],
    ids=str,
)
def test_options_that_cannot_be_are_errors_as_for_any_model(
    options: dict[str, object], path: Path
) -> None:
    with pytest.raises(ArmpyError) as expected:
        Runtime(RuntimeOptions(**options))  # type: ignore[arg-type]
    with pytest.raises(ArmpyError) as caught:
        armpy.load(path, **options)  # type: ignore[arg-type]
    assert type(caught.value) is type(expected.value)
    assert str(caught.value) == str(expected.value)


def test_no_memory_at_all_is_too_little(path: Path) -> None:
    with pytest.raises(MemoryLimitError):
        armpy.load(path, memory_limit_bytes=0)
    with pytest.raises(InvalidArgumentError, match=r"memory_limit_bytes: .*0 or more; got -1"):
        armpy.load(path, memory_limit_bytes=-1)


def test_a_limit_that_is_too_small_is_an_error_as_for_any_model(tmp_path: Path) -> None:
    path = tmp_path / "wide.armpy"
    net = Network()
    net.output("y", net.add(ADD, net.input("x", f32(1 << 18)), net.constant(floats(1))))
    graph = net.build()
    Model(graph).save(path)
    with pytest.raises(MemoryLimitError) as expected:
        Model(graph, Runtime(RuntimeOptions(memory_limit_bytes=1 << 19)))
    with pytest.raises(MemoryLimitError) as caught:
        armpy.load(path, memory_limit_bytes=1 << 19)
    assert str(caught.value) == str(expected.value)


def test_real_numbers_are_quantised_if_they_are_to_be(tmp_path: Path) -> None:
    path = tmp_path / "quantized.armpy"
    Model(quantized()).save(path)
    numbers = np.array([[-4, -1, -0.5, 0, 0.5, 1, 2, 60]], np.float32)
    model = armpy.load(path, quantize_inputs=True)
    assert model.is_light
    # q = real / 0.5 - 3, and relu keeps what is at least the zero point -3.
    assert np.asarray(model(numbers)).tolist() == [[-3, -3, -3, -3, -2, -1, 1, 117]]
    assert model.is_light
    with pytest.raises(InvalidArgumentError) as caught:
        armpy.load(path)(numbers)
    with pytest.raises(InvalidArgumentError) as expected:
        Model(quantized())(numbers)
    assert str(caught.value) == str(expected.value)


def with_state() -> Graph:
    """``state += x``, ``y = state``."""
    net = Network()
    state = net.variable("state", f32(2), floats(1, 2), key="state")
    total = net.add(ADD, state, net.input("x", f32(2)))
    net.assign(state, total)
    net.output("y", total)
    return net.build()


def on_two_backends() -> Graph:
    """A part for each of two backends, with a constant that both read."""
    net = Network()
    weights = net.constant(np.eye(4, dtype=np.float32) * 2)
    dense = net.add(FullyConnected(), net.input("x", f32(1, 4)), weights)
    net.output("y", net.add(Softmax(), net.add(FullyConnected(), dense, weights)))
    return net.build()


MODELS = {
    "variables": with_state,
    "a loop": lambda: loop(3),
    "branches": lambda: doubling(5),
    "two layers": on_two_backends,
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_models_of_every_kind_run_as_they_did(name: str, tmp_path: Path) -> None:
    original = Model(MODELS[name]())
    original.prepare()
    path = tmp_path / "model.armpy"
    original.save(path)
    model = armpy.load(path)
    assert model.inputs == original.inputs
    assert model.outputs == original.outputs
    for number in range(3):
        feeds = {
            v.name: np.full(v.info.known_shape, number + 1, v.info.data_type.dtype)
            for v in original.graph.inputs
        }
        right, other = original.run(feeds), model.run(feeds)
        assert {n: a.tobytes() for n, a in right.items()} == {
            n: a.tobytes() for n, a in other.items()
        }
    original.reset_state()
    model.reset_state()
    right, other = original.run(feeds), model.run(feeds)
    assert {n: a.tobytes() for n, a in right.items()} == {n: a.tobytes() for n, a in other.items()}
