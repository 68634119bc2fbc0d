"""A .tflite file from the parser to its results, and the texts of what goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

import armpy
import armpy_compat.pyarmnn as ann
from armpy_testing.digits import MODEL as _DIGITS

from ..armnn_texts import armnn_file

_CPU_REF = [ann.BackendId("CpuRef")]


class _Loaded:
    """The digits model, loaded on CpuRef."""

    def __init__(self, options: ann.OptimizerOptions | None = None) -> None:
        self.parser = ann.ITfLiteParser()
        self.network = self.parser.CreateNetworkFromBinaryFile(str(_DIGITS))
        self.runtime = ann.IRuntime(ann.CreationOptions())
        spec = self.runtime.GetDeviceSpec()
        self.optimized, self.messages = ann.Optimize(self.network, _CPU_REF, spec, options)
        (name,) = self.parser.GetSubgraphInputTensorNames(0)
        self.input = self.parser.GetNetworkInputBindingInfo(0, name)
        (name,) = self.parser.GetSubgraphOutputTensorNames(0)
        self.output = self.parser.GetNetworkOutputBindingInfo(0, name)
        self.network_id, _ = self.runtime.LoadNetwork(self.optimized)


@pytest.fixture(scope="module")
def loaded() -> _Loaded:
    return _Loaded()


@pytest.fixture(scope="module")
def image() -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    return np.random.default_rng(3).integers(-128, 127, 256, np.int8)


def test_results_are_armpys_own_and_written_in_place(
    loaded: _Loaded, image: np.ndarray[tuple[int, ...], np.dtype[np.int8]]
) -> None:
    outputs = ann.make_output_tensors([loaded.output])
    (scores,) = ann.workload_tensors_to_ndarray(outputs)
    for pixels in (image, image[::-1].copy()):
        inputs = ann.make_input_tensors([loaded.input], [pixels])
        loaded.runtime.EnqueueWorkload(loaded.network_id, inputs, outputs)
        with armpy.load(_DIGITS, backends=["CpuRef"]) as model:
            expected = model(pixels.reshape(1, 16, 16, 1))
        np.testing.assert_array_equal(scores, expected)


def test_ids_are_indexes_of_tensors_shifted_by_eight_bits(loaded: _Loaded) -> None:
    assert loaded.input[0] % 256 == loaded.output[0] % 256 == 0
    assert loaded.input[0] != loaded.output[0]
    assert loaded.input[1].GetDataType() == ann.DataType_QAsymmS8
    assert [*loaded.input[1].GetShape()] == [1, 16, 16, 1]
    info = loaded.runtime.GetInputTensorInfo(loaded.network_id, loaded.input[0])
    assert info.GetQuantizationScale() == loaded.input[1].GetQuantizationScale()


def test_a_loaded_network_belongs_to_the_runtime(loaded: _Loaded) -> None:
    assert not loaded.optimized.thisown
    with pytest.raises(RuntimeError, match="was loaded before"):
        loaded.runtime.LoadNetwork(loaded.optimized)


def test_calls_with_wrong_tensors_are_refused(
    loaded: _Loaded, image: np.ndarray[tuple[int, ...], np.dtype[np.int8]]
) -> None:
    run = loaded.runtime.EnqueueWorkload
    inputs = ann.make_input_tensors([loaded.input], [image])
    outputs = ann.make_output_tensors([loaded.output])
    small = ann.TensorInfo(ann.TensorShape((7,)), ann.DataType_QAsymmS8, 1.0, 0, True)
    tensor = ann.ConstTensor(small, np.zeros(7, np.int8))
    calls: list[tuple[Callable[[], None], type[Exception], str]] = [
        (lambda: run(0, [], outputs), RuntimeError, "Number of inputs provided does not match"),
        (
            lambda: run(0, inputs, []),
            RuntimeError,
            "No tensor supplied for output",
        ),
        (lambda: run(0, [(7, tensor)], outputs), RuntimeError, "No tensor supplied for input"),
        (lambda: run(0, [(loaded.input[0], tensor)], outputs), RuntimeError, "same number of elem"),
        (lambda: run(99, inputs, outputs), RuntimeError, "Failed to enqueue workload"),
        (lambda: run(0, [1], outputs), TypeError, "in method 'IRuntime_EnqueueWorkload'"),  # type: ignore[list-item]
    ]
    for call, error, text in calls:
        with pytest.raises(error, match=text):
            call()


def test_a_profile_has_times_of_each_call(
    image: np.ndarray[tuple[int, ...], np.dtype[np.int8]],
) -> None:
    loaded = _Loaded()
    profiler = loaded.runtime.GetProfiler(0)
    assert '"ArmNN"' in profiler.as_json()
    profiler.EnableProfiling(True)
    inputs = ann.make_input_tensors([loaded.input], [image])
    for _ in range(2):
        loaded.runtime.EnqueueWorkload(0, inputs, ann.make_output_tensors([loaded.output]))
    profiler.EnableProfiling(False)
    loaded.runtime.EnqueueWorkload(0, inputs, ann.make_output_tensors([loaded.output]))
    data = ann.get_profiling_data(profiler)
    assert data.inference_data["time_unit"] == "us"
    assert len(data.inference_data["execution_time"]) == 2
    convolutions = [
        times
        for name, times in data.per_workload_execution_data.items()
        if name.startswith("RefConvolution2dWorkload_Execute_#")
    ]
    assert convolutions
    assert {times["backend"] for times in convolutions} == {"CpuRef"}
    assert profiler.event_log().count("EnqueueWorkload") == 3  # two calls and their statistics


def test_cpu_acc_is_numba_acc_and_the_order_of_preferences_holds(loaded: _Loaded) -> None:
    spec = loaded.runtime.GetDeviceSpec()
    assert {"CpuAcc", "CpuRef"} <= {backend.Get() for backend in spec.GetSupportedBackends()}
    assert spec.armpy_ids(["GpuAcc", "CpuRef", "CpuAcc", "CpuRef"]) == ["CpuRef", "NumbaAcc"]


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    parser = ann.ITfLiteParser()
    with pytest.raises(RuntimeError, match=r"Cannot find the file \(/nope\)"):
        parser.CreateNetworkFromBinaryFile("/nope")
    (tmp_path / "bad.tflite").write_bytes(b"no model")
    with pytest.raises(RuntimeError, match=r"bad\.tflite"):
        parser.CreateNetworkFromBinaryFile(str(tmp_path / "bad.tflite"))
    with pytest.raises(TypeError, match="argument 2 of type 'char const \\*'"):
        parser.CreateNetworkFromBinaryFile(tmp_path)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match=r"Invalid \(null\) filename"):
        ann.IOnnxParser().CreateNetworkFromBinaryFile("/nope")
    with pytest.raises(RuntimeError, match="Cannot read the file /nope"):
        ann.IDeserializer().CreateNetworkFromBinary("/nope")


def test_the_drawing_has_layers_and_shapes(loaded: _Loaded, tmp_path: Path) -> None:
    loaded.optimized.SerializeToDot(str(tmp_path / "net.dot"))
    drawing = (tmp_path / "net.dot").read_text()
    assert "[label=< [1,16,16,1] >]" in drawing
    assert "BackendID : CpuRef" in drawing
    with pytest.raises(RuntimeError, match="Failed to open dot file"):
        loaded.optimized.SerializeToDot(str(tmp_path / "none" / "net.dot"))


_FLOOR = """{
    inputIds: [4], outputIds: [6],
    featureVersions: { bindingIdsScheme: 1, weightsLayoutScheme: 1, constantTensorsAsInputs: 1 },
    layers: [
        { layer_type: "InputLayer", layer: { base: { layerBindingId: 4, base: {
            index: 0, layerName: "x", layerType: "Input",
            outputSlots: [{ index: 0,
                tensorInfo: { dimensions: [2], dataType: "Float32" } }] } } } },
        { layer_type: "FloorLayer", layer: { base: {
            index: 1, layerName: "floor", layerType: "Floor",
            inputSlots: [{ index: 0, connection: { sourceLayerIndex: 0, outputSlotIndex: 0 } }],
            outputSlots: [{ index: 0, tensorInfo: { dimensions: [2], dataType: "Float32" } }] } } },
        { layer_type: "OutputLayer", layer: { base: { layerBindingId: 6, base: {
            index: 2, layerName: "y", layerType: "Output",
            inputSlots: [{ index: 0, connection: { sourceLayerIndex: 1, outputSlotIndex: 0 } }]
        } } } }
    ] }"""


def test_an_armnn_file_has_the_ids_that_it_says(tmp_path: Path) -> None:
    if not any(entry.name == "armnn" for entry in entry_points(group="armpy.front_ends")):
        pytest.skip("armpy-compat is not installed, so that armpy does not know .armnn files")
    path = tmp_path / "floor.armnn"
    path.write_bytes(armnn_file(_FLOOR))
    parser = ann.IDeserializer()
    network = parser.CreateNetworkFromBinary(str(path))
    inputs = [parser.GetNetworkInputBindingInfo(0, "x")]
    outputs = [parser.GetNetworkOutputBindingInfo(99, "y")]
    assert (inputs[0][0], outputs[0][0]) == (4, 6)
    runtime = ann.IRuntime(ann.CreationOptions())
    optimized, _ = ann.Optimize(network, _CPU_REF, runtime.GetDeviceSpec())
    network_id, _ = runtime.LoadNetwork(optimized)
    results = ann.make_output_tensors(outputs)
    data = [np.array([1.5, -0.5], np.float32)]
    runtime.EnqueueWorkload(network_id, ann.make_input_tensors(inputs, data), results)
    assert results[0][1].get_memory_area().tolist() == [1.0, -1.0]
    with pytest.raises(RuntimeError, match="No output binding found for layer:x"):
        parser.GetNetworkOutputBindingInfo(0, "x")


def test_an_onnx_file_has_places_as_ids(tmp_path: Path) -> None:
    parser_of_text = pytest.importorskip("onnx.parser")
    text = """<ir_version: 8, opset_import: ["": 17]>
        g (float[2, 3] a, float[2, 3] b) => (float[2, 3] c) { c = Sub(a, b) }"""
    path = tmp_path / "model.onnx"
    path.write_bytes(parser_of_text.parse_model(text).SerializeToString())
    parser = ann.IOnnxParser()
    network = parser.CreateNetworkFromBinaryFile(str(path))
    inputs = [parser.GetNetworkInputBindingInfo(name) for name in ("a", "b")]
    output = parser.GetNetworkOutputBindingInfo("c")
    assert [binding_id for binding_id, _ in (*inputs, output)] == [0, 1, 0]
    runtime = ann.IRuntime(ann.CreationOptions())
    optimized, _ = ann.Optimize(network, _CPU_REF, runtime.GetDeviceSpec())
    network_id, _ = runtime.LoadNetwork(optimized)
    arrays = [np.full((2, 3), value, np.float32) for value in (5, 3)]
    results = ann.make_output_tensors([output])
    runtime.EnqueueWorkload(network_id, ann.make_input_tensors(inputs, arrays), results)
    assert ann.workload_tensors_to_ndarray(results)[0].tolist() == [[2.0] * 3] * 2
    with pytest.raises(RuntimeError, match="The input layer 'z' does not exist"):
        parser.GetNetworkInputBindingInfo("z")
