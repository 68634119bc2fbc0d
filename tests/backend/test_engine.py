"""Backends that run whole subgraphs through an engine."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

import armpy
from armpy.backend import DeviceInfo, IEngineBackend, IEngineProgram, IEnginePrograms
from armpy.backend.options import OptionValue
from armpy.compiler import OptimizerOptions, optimize_graph
from armpy.errors import BackendError, UnimplementedError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import SubgraphView
from armpy.ops import BinaryOperation, ElementwiseBinary
from armpy.ops.operation import Array
from armpy.types import BackendId, DeviceType
from armpy_testing.backends.fake_backends import registry_of
from armpy_testing.models.networks import doublings, floats, placement_of
from armpy_testing.models.tflite_writer import TfliteModel

X = floats(1, 2)
BY_CPU_REF, BY_ENGINE = [2.0, 4.0], [102.0, 104.0]


class Program(IEngineProgram):
    model: bytes = b"double"

    def execute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        np.add(inputs[0] * 2, 100, out=outputs[0])  # the 100 distinguish it from CpuRef


class Engine(IEnginePrograms):
    def __init__(self, error: Exception | None = None) -> None:
        self.may_compile = threading.Event()
        self.error = error

    def describe(self, options: Mapping[str, object]) -> dict[str, OptionValue]:
        return {"version": "1"}

    def compile(self, model: bytes, about: Mapping[str, OptionValue]) -> Program:
        assert self.may_compile.wait(60)
        if self.error is not None:
            raise self.error
        return Program()


class EngineBackend(IEngineBackend):
    def __init__(self, engine: Engine, device_type: DeviceType) -> None:
        self.engine = engine
        self._device_type = device_type

    def get_id(self) -> BackendId:
        return "Engine"

    def get_api_version(self) -> str:
        return "2.8"

    def get_devices(self) -> Sequence[DeviceInfo]:
        return (DeviceInfo(device_type=self._device_type),)

    def get_engine(self) -> Engine:
        return self.engine

    def convert(self, view: SubgraphView) -> bytes:
        if any(layer.operation.name != "ElementwiseBinary" for layer in view.layers):
            raise UnimplementedError("this is not an addition")
        return b"double"


def doubling() -> bytes:
    """A model that doubles its input, by an addition."""
    model = TfliteModel()
    main = model.subgraph()
    x, y = main.tensor("x", (2,)), main.tensor("y", (2,))
    main.operator("ADD", [x, x], [y], {})
    main.inputs(x)
    main.outputs(y)
    return model.to_bytes()


def answer_of(model: armpy.Model) -> list[float]:
    answer = model(X)
    assert isinstance(answer, np.ndarray)
    values: list[float] = answer.tolist()
    return values


def runtime_of(backend: EngineBackend) -> Runtime:
    registry = registry_of(backend, ReferenceBackend())
    return Runtime(RuntimeOptions(backends=["Engine", "CpuRef"], registry=registry))


def forget_layers() -> None:
    from armpy.backend.hosting import engine

    engine._answer.cache_clear()
    engine._unconverted.cache_clear()


@pytest.fixture(autouse=True)
def nothing_of_other_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_layers()
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))


def test_an_engine_runs_what_it_compiles() -> None:
    backend = EngineBackend(Engine(), DeviceType.CPU_COMPILED)
    backend.engine.may_compile.set()
    model = armpy.load(doubling(), runtime=runtime_of(backend))
    assert answer_of(model) == BY_ENGINE


@pytest.mark.parametrize(
    ("refused", "timeout_s", "compiled"),
    [
        (None, None, [8]),
        # Each kind of layer is converted alone to find the refused one.
        (3, None, [1, 4, 3]),
        (3, 60, [1, 3, 4]),
    ],
)
def test_connected_layers_are_compiled_once_and_those_around_a_refused_one(
    refused: int | None, timeout_s: float | None, compiled: list[int]
) -> None:
    sizes: list[int] = []

    class CountingBackend(EngineBackend):
        def convert(self, view: SubgraphView) -> bytes:
            model = super().convert(view)
            sizes.append(len(view.layers))
            return model

    backend = CountingBackend(Engine(), DeviceType.CPU_COMPILED)
    backend.engine.may_compile.set()
    options = OptimizerOptions(preparation_timeout_s=timeout_s)
    network = optimize_graph(doublings(8, refused), [backend, ReferenceBackend()], options)
    assert sizes == compiled
    texts = [refusal.text for refusal in placement_of(network).refusals]
    reason = "Activation RELU of FLOAT32 to FLOAT32: this is not an addition"
    assert texts == ([] if refused is None else [reason])


class Counting(EngineBackend):
    """Notes how many layers are converted, and what is compiled."""

    def __init__(self, device_type: DeviceType = DeviceType.CPU_COMPILED) -> None:
        super().__init__(Engine(), device_type)
        self.engine.may_compile.set()
        self.calls: list[int | bytes] = []
        compile_ = self.engine.compile

        def noting(model: bytes, about: Mapping[str, OptionValue]) -> Program:
            self.calls.append(model)
            program = compile_(model, about)
            program.model = b"saved"
            return program

        self.engine.compile = noting  # type: ignore[method-assign]

    def convert(self, view: SubgraphView) -> bytes:
        self.calls.append(len(view.layers))
        return super().convert(view)


@pytest.mark.parametrize(
    ("refused", "calls"),
    # With a refused layer, the whole network is tried first, and then each kind of layer.
    [(None, [b"saved"]), (3, [8, 1, 1, b"saved", b"saved"])],
)
def test_a_saved_program_is_compiled_and_no_other(
    refused: int | None, calls: list[int | bytes]
) -> None:
    armpy.Model(doublings(8, refused), runtime_of(Counting()))
    forget_layers()
    backend = Counting()
    model = armpy.Model(doublings(8, refused), runtime_of(backend))
    assert backend.calls == calls
    assert placement_of(model).layers_by_backend["Engine"] == 8 - (refused is not None)


def test_a_program_of_a_compiled_file_is_compiled_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    armpy.Model(doublings(8), runtime_of(Counting())).save(tmp_path / "sums.armpy")
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "empty"))
    backend = Counting()
    model = armpy.load(tmp_path / "sums.armpy", runtime=runtime_of(backend))
    assert backend.calls == [b"saved"]
    assert placement_of(model).layers_by_backend == {"Engine": 8}


def test_a_saved_program_of_another_version_of_the_engine_is_not_used() -> None:
    armpy.Model(doublings(8), runtime_of(Counting()))
    backend = Counting()
    backend.engine.describe = lambda options: {"version": "2"}  # type: ignore[method-assign]
    armpy.Model(doublings(8), runtime_of(backend))
    assert backend.calls == [8, b"double"]


def test_a_refusal_names_the_operation_its_types_and_shapes_and_the_engine_s_error() -> None:
    class Differing(EngineBackend):
        def find_difference(self, *_: object) -> str:
            return "it rounds otherwise"

    error = UnimplementedError("no kernel")
    for backend, text in (
        (EngineBackend(Engine(error), DeviceType.OTHER), "FLOAT32 (2,) to FLOAT32 (2,): no kernel"),
        (Differing(Engine(), DeviceType.OTHER), "FLOAT32 to FLOAT32: it rounds otherwise"),
    ):
        backend.engine.may_compile.set()
        model = armpy.load(doubling(), runtime=runtime_of(backend))
        (refusal,) = placement_of(model).refusals
        assert refusal.text == f"ElementwiseBinary ADD of {text}"


ABORTING = """
import os
from armpy.backend import IEngineProgram, IEnginePrograms

class Program(IEngineProgram):
    model = b""
    def execute(self, inputs, outputs):
        outputs[0][...] = inputs[0] * 2 + 100

class Aborting(IEnginePrograms):
    def describe(self, options):
        return {}
    def compile(self, model, about):
        if b"MUL" in model:
            os.abort()
        return Program()
"""


def test_an_engine_that_aborts_does_so_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Tried(EngineBackend):
        _may_end_process = True

        def convert(self, view: SubgraphView) -> bytes:
            return str([layer.operation for layer in view.layers]).encode()

    (tmp_path / "aborting_engine.py").write_text(ABORTING)
    monkeypatch.syspath_prepend(tmp_path)
    from aborting_engine import Aborting  # type: ignore[import-not-found]

    backend = Tried(Aborting(), DeviceType.OTHER)
    net = armpy.Network()
    x = net.input("x", armpy.TensorInfo((2,), armpy.DataType.FLOAT32))
    doubled = net.add(ElementwiseBinary(BinaryOperation.ADD), x, x)
    net.output("y", net.add(ElementwiseBinary(BinaryOperation.MUL), doubled, doubled))
    model = armpy.Model(net, runtime_of(backend))
    assert placement_of(model).layers_by_backend == {"Engine": 1, "CpuRef": 1}
    assert answer_of(model) == [102.0**2, 104.0**2]
    (refusal,) = placement_of(model).refusals
    assert "the engine does not survive the model: it " in refusal.text


def test_calls_are_answered_while_an_accelerator_compiles_and_none_is_lost_or_mixed() -> None:
    backend = EngineBackend(Engine(), DeviceType.ACCELERATOR)
    model = armpy.load(doubling(), runtime=runtime_of(backend), compile="background")
    assert answer_of(model) == BY_CPU_REF
    answers: list[list[float]] = []

    def call(number: int) -> None:
        if number == 1000:
            backend.engine.may_compile.set()
        answers.append(answer_of(model))

    with ThreadPoolExecutor(4) as pool:
        [*pool.map(call, range(10_000))]
    model.warm_up()  # waits for what is compiled
    assert answer_of(model) == BY_ENGINE
    assert len(answers) == 10_000
    assert {tuple(answer) for answer in answers} <= {tuple(BY_CPU_REF), tuple(BY_ENGINE)}


def test_a_model_stays_where_it_runs_if_the_accelerator_cannot_compile(
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend = EngineBackend(Engine(BackendError("the driver is too old")), DeviceType.GPU)
    model = armpy.load(doubling(), runtime=runtime_of(backend), compile="background")
    assert answer_of(model) == BY_CPU_REF
    assert "Engine is compiling in this process" in str(model.placement)
    backend.engine.may_compile.set()
    tiers = model.handle.loaded.tiers
    assert tiers is not None
    tiers.settle(60)
    assert answer_of(model) == BY_CPU_REF
    assert "the driver is too old" in str(model.placement) + caplog.text
