"""Requests to a served model get the model's outputs, or an error with the reason."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from armpy import (
    BackendError,
    DataType,
    DeadObjectError,
    ExecutionTimeoutError,
    InvalidArgumentError,
    LayerValidationError,
    MemoryLimitError,
    MemoryQuotaError,
    Model,
    ModelNotFoundError,
    Network,
    ParserError,
    Quantization,
    QueueFullError,
    Runtime,
    RuntimeOptions,
    TensorInfo,
    ops,
)
from armpy_serving import KernelCounter, ServedModel, status_of
from armpy_serving.requests import InferenceRequest, read_request, write_answer
from armpy_serving.status import text_of
from armpy_testing.effort import effort

SCALE = Quantization.per_tensor(0.5, -3)


@pytest.fixture
def served() -> Iterator[ServedModel]:
    net = Network()
    info = TensorInfo((None, 2), DataType.FLOAT32)
    value = net.input("serving_default_x:0", info)
    other = net.input("q", TensorInfo((2,), DataType.QASYMM_S8, SCALE))
    net.output("double", net.add(ops.ElementwiseBinary(ops.BinaryOperation.ADD), value, value))
    net.output("real", net.add(ops.Dequantize(), other))
    with Runtime(RuntimeOptions(["CpuRef"])) as runtime, Model(net, runtime) as model:
        yield ServedModel(model, "two", "3")


def body_of(**changes: object) -> bytes:
    inputs = [
        {"name": "serving_default_x:0", "datatype": "FP32", "shape": [1, 2], "data": [0.1, -2]},
        {"name": "q", "datatype": "INT8", "shape": [2], "data": [1, -3]},
    ]
    return json.dumps({"id": "7", "inputs": inputs} | changes).encode()


def test_json_is_answered_by_json(served: ServedModel) -> None:
    status, body, header = served.answer(body_of())
    assert (status, header) == (200, None)
    answer = json.loads(body)
    assert (answer["model_name"], answer["model_version"], answer["id"]) == ("two", "3", "7")
    tenth = 2 * float(np.float32(0.1))
    assert answer["outputs"] == [
        {
            "name": "double",
            "datatype": "FP32",
            "shape": [1, 2],
            "data": [tenth, -4],
        },
        {"name": "real", "datatype": "FP32", "shape": [2], "data": [2.0, 0.0]},
    ]


def test_bytes_follow_the_json_both_ways(served: ServedModel) -> None:
    x, q = np.array([[1, 2], [3, 4]], "<f4"), np.array([5, 6], np.int8)
    head = json.dumps(
        {
            "inputs": [
                {
                    "name": "serving_default_x:0",
                    "datatype": "FP32",
                    "shape": [2, 2],
                    "parameters": {"binary_data_size": 16},
                },
                {
                    "name": "q",
                    "datatype": "INT8",
                    "shape": [2],
                    "parameters": {"binary_data_size": 2},
                },
            ],
            "outputs": [
                {"name": "double"},
                {"name": "real", "parameters": {"binary_data": False}},
            ],
            "parameters": {"binary_data_output": True},
        }
    ).encode()
    status, body, length = served.answer(head + x.tobytes() + q.tobytes(), len(head))
    assert status == 200
    assert length is not None
    output, as_json = json.loads(body[:length])["outputs"]
    assert output["parameters"] == {"binary_data_size": 16}
    assert as_json["data"] == [4, 4.5]
    np.testing.assert_array_equal(np.frombuffer(body[length:], "<f4").reshape(2, 2), 2 * x)


def test_null_is_a_field_that_is_left_out(served: ServedModel) -> None:
    inputs = [entry | {"parameters": None} for entry in json.loads(body_of())["inputs"]]
    nulls = {"id": None, "outputs": None, "parameters": {"timeout": None}, "inputs": inputs}
    assert served.answer(body_of(**nulls))[1] == served.answer(body_of(id=""))[1]
    outputs = [{"name": "double", "parameters": None}]
    assert served.answer(body_of(**nulls | {"outputs": outputs, "parameters": None}))[0] == 200


WRONG = {
    "no JSON": (b"{", "the body is not JSON"),
    "NaN": (b'{"inputs": NaN}', "NaN is not a number of JSON"),
    "deep": (b"[" * 100_000, "the body is not JSON"),
    "list": (b"[]", "the body is not an object"),
    "no inputs": (b"{}", "'inputs' is missing"),
    "empty": (b"", "the body is not JSON"),
    "text": (b"a" * 1000, f"got '{'a' * 60}'."),
    "missing": (body_of(inputs=[]), "missing 'serving_default_x:0', 'q'"),
    "output": (body_of(outputs=[{"name": "nope"}]), "no such output"),
    "infinity": (body_of().replace(b"-2]", b"-1e400]"), "is too large"),
    "long time-out": (
        body_of(parameters={"timeout": 10**400}),
        "the time-out is negative or not a whole number",
    ),
    "time-out": (
        body_of(parameters={"timeout": -1}),
        "the time-out is negative or not a whole number",
    ),
    "bytes of all": (
        body_of(parameters={"binary_data_output": "yes"}),
        "binary_data_output of the request is not a boolean. Expected true or false; got 'yes'",
    ),
    "bytes of one": (
        body_of(outputs=[{"name": "real", "parameters": {"binary_data": 1}}]),
        "binary_data of output 'real' is not a boolean. Expected true or false; got 1",
    ),
    "parameters": (body_of(parameters=3), "parameters of the request have the wrong type"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_requests_are_the_clients_fault(served: ServedModel, kind: str) -> None:
    body, message = WRONG[kind]
    status, answer, _ = served.answer(body)
    assert status == 400
    assert message in json.loads(answer)["error"]
    assert served.answer(body_of())[0] == 200


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"datatype": "FP64"}, "Expected FP32; got FP64"),
        ({"shape": [1, 3], "data": [1, 2, 3]}, "serving_default_x:0"),
        ({"name": "y"}, "missing 'serving_default_x:0'; unknown 'y'"),
        ({"parameters": {"binary_data_size": 4}}, "binary_data_size is not a number of bytes"),
        ({"parameters": {"binary_data_size": "yes"}}, "binary_data_size is not a number of bytes"),
        ({"parameters": {"binary_data": "yes"}}, "the parameter binary_data of input"),
        ({"parameters": {"binary_data_size": 0}}, "both 'data' and binary_data_size"),
    ],
)
def test_wrong_inputs_are_named(
    served: ServedModel, change: dict[str, object], message: str
) -> None:
    inputs = json.loads(body_of())["inputs"]
    inputs[0] |= change
    status, answer, _ = served.answer(body_of(inputs=inputs))
    assert (status, message in json.loads(answer)["error"]) == (400, True), answer


@pytest.mark.parametrize("parameters", [{"classification": 3}, {"shared_memory_region": "r"}])
def test_outputs_are_neither_labels_nor_in_shared_memory(
    served: ServedModel, parameters: dict[str, object]
) -> None:
    status, answer, _ = served.answer(body_of(outputs=[{"name": "real", "parameters": parameters}]))
    assert status == 501
    message = f"output 'real': the parameter {next(iter(parameters))} is Triton's alone"
    assert message in json.loads(answer)["error"]
    by_name = {(m.name, m.labels.get("code")): m for m in served.metrics.metrics()}
    assert by_name["armpy_requests", "UNIMPLEMENTED"].value == 1


def test_a_closed_model_is_not_the_clients_fault(served: ServedModel) -> None:
    served.model.close()
    status, answer, _ = served.answer(body_of())
    assert status == 503
    assert "not loaded any more" in json.loads(answer)["error"]


def test_what_becomes_of_requests_is_counted(served: ServedModel) -> None:
    served.answer(body_of())
    served.answer(body_of(outputs=[{"name": "nope"}]))
    served.answer(b"no JSON")
    by_name = {(m.name, m.labels.get("code")): m for m in served.metrics.metrics()}
    assert by_name["armpy_requests", "OK"].value == 1
    assert by_name["armpy_requests", "INVALID_ARGUMENT"].value == 2
    assert by_name["armpy_batch_rows", None].buckets[0] == (1.0, 1)


def test_prometheus_reads_the_metrics(served: ServedModel) -> None:
    client = pytest.importorskip("prometheus_client", reason="prometheus_client is not installed")
    from armpy_serving.prometheus import PrometheusCollector

    registry = client.CollectorRegistry()
    with KernelCounter() as kernels:
        registry.register(PrometheusCollector(kernels))
    served.answer(body_of())
    text = client.generate_latest(registry).decode()
    assert 'armpy_requests_total{code="OK",model="two",version="3"} 1.0' in text
    assert 'armpy_batch_rows_bucket{le="+Inf",model="two",version="3"} 1.0' in text
    assert "armpy_kernels_compiled_total 0.0" in text
    assert "armpy_memory_bytes" in text


def test_each_error_has_its_status() -> None:
    expected = {
        InvalidArgumentError: (400, "INVALID_ARGUMENT"),
        LayerValidationError: (400, "INVALID_ARGUMENT"),
        ModelNotFoundError: (404, "NOT_FOUND"),
        QueueFullError: (503, "UNAVAILABLE"),
        DeadObjectError: (503, "UNAVAILABLE"),
        MemoryLimitError: (503, "RESOURCE_EXHAUSTED"),
        MemoryQuotaError: (413, "RESOURCE_EXHAUSTED"),
        ExecutionTimeoutError: (504, "DEADLINE_EXCEEDED"),
        BackendError: (500, "INTERNAL"),
        ParserError: (500, "INTERNAL"),
    }
    statuses = {kind: status_of(kind("it failed")) for kind in expected}
    assert {kind: (s.http, s.grpc) for kind, s in statuses.items()} == expected
    assert status_of(ZeroDivisionError()).http == 500
    assert text_of(MemoryError()) == "the process has no memory left for this."


def test_the_time_out_is_in_microseconds() -> None:
    request = read_request(body_of(parameters={"timeout": 2_000_000}))
    assert 0 < (request.deadline_s or 0) <= 2
    assert read_request(body_of()).deadline_s is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@pytest.mark.slow
@given(data=st.data())
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=effort(300, quick=60),
)
def test_hostile_requests_are_never_the_servers_fault(
    served: ServedModel, data: st.DataObject
) -> None:
    # One place of a sound request becomes something else: a key's value, or an input's.
    document = json.loads(body_of())
    where = data.draw(st.sampled_from([document, *document["inputs"]]))
    key = data.draw(st.sampled_from([*where, "outputs", "parameters", "binary_data_size"]))
    where[key] = data.draw(JSON)
    body = json.dumps(document).encode() + data.draw(st.binary(max_size=3))
    status, answer, _ = served.answer(body, data.draw(st.none() | st.integers(-1, len(body) + 1)))
    assert status in (200, 400), answer
    if status == 400:
        assert json.loads(answer)["error"]


@pytest.fixture
def shouting() -> Iterator[ServedModel]:
    """Strings with another one appended."""
    net = Network()
    words = net.input("words", TensorInfo((None,), DataType.STRING))
    net.output("loud", net.add(ops.StringConcat(), words, net.constant("!")))
    with Runtime(RuntimeOptions(["CpuRef"])) as runtime, Model(net, runtime) as model:
        yield ServedModel(model, "shouting", "1")


def test_strings_are_served_as_bytes_in_json(shouting: ServedModel) -> None:
    assert shouting.metadata["inputs"] == [{"name": "words", "datatype": "BYTES", "shape": [-1]}]
    entry = {"name": "words", "datatype": "BYTES", "shape": [2], "data": ["a", "ü"]}
    status, body, header = shouting.answer(json.dumps({"inputs": [entry]}).encode())
    assert (status, header) == (200, None)
    output = {"name": "loud", "datatype": "BYTES", "shape": [2], "data": ["a!", "ü!"]}
    assert json.loads(body)["outputs"] == [output]


def test_strings_are_served_as_bytes_in_binary_data(shouting: ServedModel) -> None:
    raw = b"\x01\0\0\0\xff\0\0\0\0"
    size = {"binary_data_size": len(raw)}
    entry = {"name": "words", "datatype": "BYTES", "shape": [2], "parameters": size}
    document = {"inputs": [entry], "parameters": {"binary_data_output": True}}
    head = json.dumps(document).encode()
    status, body, header = shouting.answer(head + raw, len(head))
    assert (status, body[header:]) == (200, b"\x02\0\0\0\xff!\x01\0\0\0!")


ANSWERS = {
    "numbers": np.linspace(0.1, 0.9, 100_000, dtype=np.float32),
    "strings": np.array(['a"ü' * 30] * 2_000, object),
    "long strings": np.array(["ü" * 50_000, "a"] * 4, object),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_is_written_in_parts_up_to_a_limit_until_the_deadline(kind: str) -> None:
    array = ANSWERS[kind]
    data_type = {"y": DataType.STRING if array.dtype.hasobject else DataType.FLOAT32}
    body, _ = write_answer(InferenceRequest({}, {}), {"y": array}, data_type, "m")
    assert json.loads(body)["outputs"][0]["data"] == array.tolist()
    limit_bytes = len(body) - 1
    with pytest.raises(MemoryQuotaError, match=f"at most {limit_bytes} bytes"):
        write_answer(
            InferenceRequest({}, {}), {"y": array}, data_type, "m", limit_bytes=limit_bytes
        )
    late = InferenceRequest({}, {}, parameters={"timeout": 1_000}, received_s=0)
    with pytest.raises(ExecutionTimeoutError):
        write_answer(late, {"y": array}, data_type, "m")


def test_strings_as_bytes_are_held_against_the_limit() -> None:
    outputs = dict.fromkeys("yz", np.array(["a" * 1_000] * 8, object))
    binary = InferenceRequest({}, {}, all_binary=True)
    with pytest.raises(MemoryQuotaError, match="at most 10000 bytes"):
        write_answer(binary, outputs, dict.fromkeys("yz", DataType.STRING), "m", limit_bytes=10_000)
