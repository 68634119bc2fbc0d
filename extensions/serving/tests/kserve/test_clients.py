"""Triton's client gets what armpy computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .kserve_server import KServeProcess

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
