"""The conformance kit on the backend, networks of several layers, and refused layers."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import armpy
from armpy import DataType, Model, Network, Preference, Runtime, RuntimeOptions, TensorInfo
from armpy.backend import PreparationRequest
from armpy.errors import BackendUnavailableError, MemoryLimitError, UnimplementedError
from armpy.ops import Activation, ActivationFunction, BinaryOperation, ElementwiseBinary, Gather
from armpy.ops.operation import Array
from armpy.store.archive.container import open_container, write_container
from armpy.tensor import Quantization
from armpy_conformance import run_conformance

pytest.importorskip("openvino")
pytest.importorskip("armpy_openvino")

from armpy_openvino import OpenVinoBackend
from armpy_openvino.differences import find_difference
from armpy_openvino.engine import available_devices, core, openvino
from armpy_openvino.programs import OpenVinoProgram, OpenVinoPrograms

from armpy_testing.backends.fake_backends import registry_of
from armpy_testing.digits import MODEL as DIGITS
from armpy_testing.effort import part_of_kit
from armpy_testing.models.tflite_writer import TfliteModel


def test_a_quantised_network_is_one_partition_with_the_answers_of_the_reference() -> None:
    model = armpy.load(DIGITS, backends=["OpenVino"], on_fallback="error")
    reference = armpy.load(DIGITS, backends=["CpuRef"])
    image = np.full((1, 16, 16, 1), -128, np.int8)  # noise would lie between classes
    image[:, 2:14, 7:9] = 127
    np.testing.assert_allclose(model(image), reference(image), atol=1)
    assert "OpenVino 10; 1 partition" in str(model.placement)


def test_without_the_engine_the_backend_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    for function in (openvino, core):
        function.cache_clear()
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(BackendUnavailableError, match=r"Run: pip install openvino$"):
        OpenVinoBackend().create_backend_context({"device": "CPU"})


def test_a_device_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(BackendUnavailableError, match=f"one of {', '.join(available_devices())}"):
        OpenVinoBackend().create_backend_context({"device": "GPU.7"})


@pytest.mark.parametrize(("preference", "name"), [("preference", "CPU"), ("npu", "NPU")])
def test_one_of_several_devices_is_chosen(
    monkeypatch: pytest.MonkeyPatch, preference: str, name: str
) -> None:
    monkeypatch.setattr("armpy_openvino.backend.available_devices", lambda: ("CPU", "GPU", "NPU"))
    registry = registry_of(OpenVinoBackend())
    options = RuntimeOptions(["OpenVino"], registry=registry, preference=Preference(preference))
    with Runtime(options) as runtime:
        (facts,) = runtime.devices
    assert facts.device.name == name
    others = {"CPU": "OTHER", "GPU": "GPU", "NPU": "ACCELERATOR"}
    others.pop(name)
    assert {other.name: other.device_type.name for other in facts.others} == others


def test_a_refusal_has_openvino_s_words_without_places_in_its_source() -> None:
    model = TfliteModel()
    main = model.subgraph()
    x, y = main.tensor("x", (2,)), main.tensor("y", (2,))
    main.operator("SKIP_GRAM", [x], [y], {})
    main.inputs(x)
    main.outputs(y)
    engine = OpenVinoPrograms()
    with pytest.raises(UnimplementedError) as caught:
        engine.compile(model.to_bytes(), engine.describe({}))
    assert caught.value.failed == "OpenVINO refuses it: No translator found for SKIP_GRAM node."


def doubling(size: int) -> OpenVinoProgram:
    """A program that adds its input to itself, on one thread."""
    model = TfliteModel()
    main = model.subgraph()
    x, y = main.tensor("x", (size,)), main.tensor("y", (size,))
    main.operator("ADD", [x, x], [y], {})
    main.inputs(x)
    main.outputs(y)
    engine = OpenVinoPrograms()
    return engine.compile(model.to_bytes(), engine.describe({"num_threads": 1}))


@pytest.mark.parametrize(("size", "bound"), [(2, 2), (1 << 17, 6)])
def test_small_arrays_are_not_bound_at_each_execution(
    size: int, bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, tensor = doubling(size), openvino().Tensor
    made: list[Array] = []

    def counted(array: Array, shared_memory: bool) -> object:
        made.append(array)
        return tensor(array, shared_memory=shared_memory)

    monkeypatch.setattr(openvino(), "Tensor", counted)
    for number in range(3):
        source, result = np.full(size, number, np.float32), np.empty(size, np.float32)
        program.execute([source], [result])
        assert (result == 2 * number).all()
        assert (source == number).all()
    assert len(made) == bound


@pytest.mark.parametrize("size", [2, 1 << 17])
def test_read_only_inputs_are_read_at_each_execution(size: int) -> None:
    program, numbers, result = (
        doubling(size),
        np.zeros(size, np.float32),
        np.zeros(size, np.float32),
    )
    source = numbers.view()
    source.flags.writeable = False
    for execute in (partial(program.execute, [source], [result]), program.bind([source], [result])):
        for number in range(3):
            numbers[:] = number
            execute()
            assert (result == 2 * number).all()


def test_bound_arrays_are_read_and_written_in_place() -> None:
    program, (source, result) = doubling(2), np.zeros((2, 2), np.float32)
    execute = program.bind([source], [result])
    for number in range(3):
        source[:] = number
        execute()
        assert (result == 2 * number).all()


def test_threads_of_callers_are_not_moved_to_certain_cores() -> None:
    assert doubling(2)._compiled.get_property("ENABLE_CPU_PINNING") is False


@pytest.mark.parametrize(
    ("batch", "size", "backend"),
    [
        *((1, 1, "CpuRef"), (1, 16, "CpuRef")),
        *((1, 17, "OpenVino"), (2, 4, "OpenVino")),
    ],
)
def test_openvino_is_not_given_gathers_that_end_the_process(
    batch: int, size: int, backend: str
) -> None:
    net = Network("gather")
    rows = net.input("rows", TensorInfo((batch, 8, size), DataType.FLOAT32))
    which = net.input("which", TensorInfo((batch, 8), DataType.SIGNED32))
    net.output("y", net.add(Gather(axis=1, batch_dims=1), rows, which))
    model = Model(net, Runtime(RuntimeOptions(backends=["OpenVino", "CpuRef"])))
    array = np.arange(batch * 8 * size, dtype=np.float32).reshape(batch, 8, size)
    order = np.tile(np.arange(7, -1, -1, dtype=np.int32), (batch, 1))
    np.testing.assert_array_equal(model(array, order), array[:, ::-1])
    assert f"{backend} 1" in str(model.placement)


@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL", "MAXIMUM"])
@pytest.mark.parametrize(("step", "differs"), [(0.25, True), (0.2333, False)])
def test_quantised_results_that_meet_halves_are_refused(
    name: str, step: float, *, differs: bool
) -> None:
    kind = DataType.QASYMM_S8
    source, output = (TensorInfo((4,), kind, Quantization.per_tensor(x)) for x in (0.125, step))
    operation = ElementwiseBinary(BinaryOperation[name])
    reason = find_difference(operation, (source, source), (output,))
    assert reason == differs * f"OpenVINO rounds halves of a quantised {name} otherwise"


def test_want_of_memory_is_no_refusal_that_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    support = OpenVinoBackend().get_layer_support(PreparationRequest())
    operation = Activation(ActivationFunction.SIGMOID)
    tensors = [TensorInfo((3, 7, 5), DataType.FLOAT32)]

    def refuse(*_: object) -> None:
        raise RuntimeError("Exception from src/core.cpp:9:\nstd::bad_alloc\n")

    with monkeypatch.context() as patch:
        patch.setattr("armpy_openvino.programs.core", lambda: SimpleNamespace(compile_model=refuse))
        with pytest.raises(MemoryLimitError, match=r"OpenVINO is out of memory.*std::bad_alloc"):
            support.is_layer_supported(operation, tensors, tensors)
    assert support.is_layer_supported(operation, tensors, tensors)


@pytest.mark.slow
def test_the_backend_keeps_to_the_contract_and_agrees_with_the_reference() -> None:
    # All cases take minutes, as each layer is compiled alone.
    cases = part_of_kit(
        "Activation/gelu",
        "Comparison/",
        "Concat/",
        "contract/compiled/patterns-come-back",
        "contract/support/codes-fit-their-refusals",
        "FullyConnected/channels-33-bytes",
        "Gather/every-bit",
        "pattern/residual",
        "pattern/separable",
        "Reduce/pairs-mean",
        "ReverseV2/",
    )
    result = run_conformance("OpenVino", filter=cases)
    assert result.is_passed, (result.shortcomings, result.problems)


def test_a_file_for_another_device_is_checked_as_it_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "digits.armpy"
    with armpy.load(DIGITS, backends=["OpenVino", "CpuRef"]) as model:
        model.save(path)
    assert armpy.check(path, device="OpenVino").fit == "fits"
    container = open_container(path, is_mapped=False)
    manifest = {k: value for k, value in container.manifest.items() if k != "sections"}
    manifest["programs"][0]["about"]["device"] = "GPU.7"
    sections = {name: container.section(name) for name in container.sections}
    write_container(path, manifest, sections)
    answer = armpy.check(path)
    assert answer.fit == "fits slower"
    assert "for host: it is for the device 'GPU.7', which OpenVINO does not find" in answer.reason
    with armpy.load(path) as loaded:
        assert not loaded.is_light
