"""Profiles as tools for Arm NN's profiler read them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from armpy.execution import NetworkProperties, Runtime
from armpy.graph.network import Network
from armpy.ops import FullyConnected
from armpy.profiling import Profiler, ProfilingDetails, to_armnn_json, to_json
from armpy_testing.backends.fake_backends import FakeBackend, runtime_of
from armpy_testing.models.networks import RELU, diamond, f32, floats
from armpy_testing.shared import shared_file

Document = dict[str, Any]  # Any: whatever JSON can hold

DETAILS = [*ProfilingDetails]


def profiler_of(runtime: Runtime, network: int) -> Profiler:
    profiler = runtime.get_profiler(network)
    assert profiler is not None
    return profiler


def armnn(profiler: Profiler, details: ProfilingDetails | None = None) -> Document:
    document: Document = json.loads(to_armnn_json(profiler, details))
    assert list(document) == ["ArmNN"]
    armnn: Document = document["ArmNN"]
    return armnn


def starting(document: Document, prefix: str) -> Document:
    """The one entry whose key is a label and a running number."""
    (entry,) = [value for key, value in document.items() if key.rpartition("_#")[0] == prefix]
    return entry  # type: ignore[no-any-return]  # of JSON


def profiling_data(armnn: Document) -> tuple[Document, dict[str, Document]]:
    """Times of inferences and of workloads, as PyArmNN's get_profiling_data finds them."""
    (inference,) = [v for k, v in armnn.items() if k.startswith("inference_measurements_")]
    (execution,) = [v for k, v in inference.items() if k.startswith("Execute_")]
    times: Document = {}
    workloads: dict[str, Document] = {}
    for key, value in execution.items():
        if "type" in value and value["type"] == "Event":
            for name, measured in value.items():
                if name.startswith("Wall clock time_#") and measured["type"] == "Measurement":
                    workloads[key] = {
                        "time_unit": measured["unit"],
                        "execution_time": [float(time) for time in measured["raw"]],
                        "backend": "CpuRef" if "ref" in key.lower() else "Unknown",
                    }
        if key.startswith("Wall clock time_#") and value["type"] == "Measurement":
            times = {"time_unit": value["unit"], "execution_time": list(map(float, value["raw"]))}
    return times, workloads


def runs(runtime: Runtime, count: int = 3) -> Profiler:
    network = runtime.load_network(diamond())
    for _ in range(count):
        runtime.enqueue_workload(network, {"x": floats(-1, 0, 2, 5)})
    return profiler_of(runtime, network)


def test_pyarmnn_finds_every_inference_and_every_workload() -> None:
    profiler = runs(runtime_of(profiling=True))
    times, workloads = profiling_data(armnn(profiler))
    wholes = [event.duration_us for event in profiler.events if event.name == "Execute"]
    assert times["time_unit"] == "us"
    assert times["execution_time"] == pytest.approx(wholes, abs=1e-3)
    assert [key.rpartition("_#")[0] for key in workloads] == [
        "RefActivationWorkload_Execute",
        *["RefElementwiseBinaryWorkload_Execute"] * 3,
    ]
    assert {workload["backend"] for workload in workloads.values()} == {"CpuRef"}
    (relu, *_) = workloads.values()
    tops = [event.duration_us for event in profiler.events if event.layer == "top"]
    assert relu["execution_time"] == pytest.approx(tops, abs=1e-3)
    assert all(len(workload["execution_time"]) == 3 for workload in workloads.values())


def events_of(document: Document) -> list[tuple[str, int, Document]]:
    """Label, number and contents of every event, in the order of the text."""
    events = []
    for key, value in document.items():
        if isinstance(value, dict) and value.get("type") == "Event":
            label, _, number = key.rpartition("_#")
            events += [(label, int(number), value), *events_of(value)]
    return events


def test_layers_of_other_backends_are_named_after_these() -> None:
    _, workloads = profiling_data(armnn(runs(runtime_of(FakeBackend("Npu"), profiling=True))))
    assert {key.rpartition("_#")[0] for key in workloads} == {
        "NpuActivationWorkload_Execute",
        "NpuElementwiseBinaryWorkload_Execute",
    }
    assert {workload["backend"] for workload in workloads.values()} == {"Unknown"}


def dense() -> Network:
    net = Network()
    weights, bias = (
        net.constant(floats(*range(n)).reshape(s)) for n, s in ((8, (2, 4)), (2, (2,)))
    )
    value = net.add(FullyConnected(), net.input("x", f32(1, 4)), weights, bias, name="dense")
    net.output("y", net.add(RELU, value, name="relu"))
    return net


@pytest.mark.parametrize("details", DETAILS)
def test_details_describe_layers(details: ProfilingDetails) -> None:
    runtime = runtime_of()
    properties = NetworkProperties(profiling=True, profiling_details=details)
    network = runtime.load_network(dense(), properties)
    runtime.enqueue_workload(network, {"x": floats(1, 2, 3, 4).reshape(1, 4)})
    profiler = profiler_of(runtime, network)
    document = armnn(profiler)
    has_layers = details is not ProfilingDetails.UNDEFINED
    assert ("Graph" in document) == has_layers
    has_measurements = any(key.startswith("inference_measurements_") for key in document)
    assert has_measurements == (details is not ProfilingDetails.ONLY)
    assert len(json.loads(to_json(profiler))["layers"]) == (2 if has_layers else 0)
    if not has_layers:
        return
    first, second = document["Graph"]
    assert first["Name"] == "dense"
    assert first["Input 0"] == {"Shape": "[1,4]", "DataType": "Float32", "Num Dims": "2"}
    assert first["Weights 0"] == {"Shape": "[2,4]", "DataType": "Float32", "Num Dims": "2"}
    assert first["Bias 0"] == {"Shape": "[2]", "DataType": "Float32", "Num Dims": "1"}
    assert first["Output 0"]["Shape"] == "[1,2]"
    assert second["function"] == "RELU"
    if has_measurements:
        _, workloads = profiling_data(document)
        execute = starting(starting(document, "inference_measurements"), "Execute")
        assert [execute[key]["GUID"] for key in workloads] == [first["GUID"], second["GUID"]]


def test_commands_of_a_compiled_region_lie_in_it() -> None:
    numba = pytest.importorskip("armpy_numba_acc")
    import armpy

    runtime = runtime_of(numba.NumbaBackend(), profiling=True)
    model = armpy.load(shared_file("models", "mlperf_tiny", "ad01_int8.tflite"), runtime=runtime)
    (spec,) = model.inputs  # whose batch is open
    model.run({spec.name: spec.random(shape=(1, 640))})
    document = armnn(profiler_of(runtime, model.network_id))
    execute = starting(starting(document, "inference_measurements"), "Execute")
    region = starting(execute, "NumbaAccPreCompiledWorkload_Execute")
    inner = {label for label, _, _ in events_of(region)}
    assert inner == {"NumbaAccFullyConnectedWorkload_Execute"}
