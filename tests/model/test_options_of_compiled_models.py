"""Options of `armpy.load` hold for compiled models as for others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy import Model, NetworkProperties, Runtime, RuntimeOptions
from armpy.core.system_trace import set_system_trace
from armpy.errors import InvalidArgumentError, MemoryLimitError
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


def test_a_runtime_that_is_given_is_used(path: Path, expected: dict[str, bytes]) -> None:
    with Runtime(RuntimeOptions(backends=["NumbaAcc"])) as runtime:
        with armpy.load(path, runtime=runtime) as model:
            assert model.runtime is runtime
            assert outputs(model) == expected
        assert not runtime.is_closed


def test_no_memory_at_all_is_too_little(path: Path) -> None:
    with pytest.raises(MemoryLimitError):
        armpy.load(path, memory_limit_bytes=0)
    with pytest.raises(InvalidArgumentError, match=r"memory_limit_bytes: .*0 or more; got -1"):
        armpy.load(path, memory_limit_bytes=-1)


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
