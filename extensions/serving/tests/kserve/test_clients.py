"""Clients of others' get what armpy computes: tritonclient, KServe's own, curl."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from .kserve_server import KServeProcess

kserve = pytest.importorskip("kserve", reason="kserve is not installed")

MIXED = {
    "x:0": np.array([[0.1, -2]], np.float32),
    "n": np.array([1, 2, 3], np.int32),
    "flags": np.array([True, False]),
    "q": np.array(1, np.int8),
}
DATATYPES = {"x:0": "FP32", "n": "INT32", "flags": "BOOL", "q": "INT8"}


def check(array: Any) -> None:  # Any: what a client makes
    np.testing.assert_array_equal(array, np.array([[0.2, -4]], np.float32))


def triton_inputs(client: Any, **options: Any) -> list[Any]:
    """Inputs for one of tritonclient's modules."""  # Any: tritonclient's
    inputs = []
    for name, array in MIXED.items():
        tensor = client.InferInput(name, [*array.shape], DATATYPES[name])
        tensor.set_data_from_numpy(array, **options)
        inputs.append(tensor)
    return inputs


@pytest.mark.parametrize("binary", [True, False])
def test_tritonclient_over_http(server: KServeProcess, binary: bool) -> None:
    triton = pytest.importorskip("tritonclient.http", reason="tritonclient is not installed")
    client = triton.InferenceServerClient(server.http_address)
    try:
        assert client.is_server_ready()
        assert client.is_model_ready("mixed")
        assert client.get_model_metadata("mixed")["platform"] == "armpy"
        outputs = [triton.InferRequestedOutput("double", binary_data=binary)]
        answer = client.infer(
            "mixed", triton_inputs(triton, binary_data=binary), outputs=outputs, request_id="9"
        )
        assert answer.get_response()["id"] == "9"
        check(answer.as_numpy("double"))
        states = {state["name"]: state["state"] for state in client.get_model_repository_index()}
        assert states["mixed"] == "READY"
    finally:
        client.close()


GRPC_CLIENT = """
import sys, numpy as np
import tritonclient.grpc as triton
with triton.InferenceServerClient(sys.argv[1]) as client:
    assert client.is_server_live() and client.is_server_ready()
    assert client.get_server_metadata().name == "armpy"
    assert client.is_model_ready("halves")
    assert [*client.get_model_metadata("halves").inputs[0].shape] == [-1]
    one = triton.InferInput("h", [2], "FP16")
    one.set_data_from_numpy(np.array([1.5, -2], np.float16))
    print(client.infer("halves", [one]).as_numpy("y").tolist())
"""


def test_tritonclient_over_grpc(server: KServeProcess) -> None:
    pytest.importorskip("tritonclient", reason="tritonclient is not installed")
    # In a process of its own: both packages register messages of the same names.
    completed = subprocess.run(
        [sys.executable, "-c", GRPC_CLIENT, server.grpc_address],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert completed.stdout == "[3.0, -4.0]\n", completed.stderr
