"""Ray Serve: answers of requests, and of calls by a handle."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import armpy_serving.ray
from armpy_testing.digits import MODEL as DIGITS

from .ray_node import expected, pixels, ray_node

ray = pytest.importorskip("ray", reason="Ray is an engine of its own: the extra 'ray' has it")
pytest.importorskip("ray.serve", reason="the extra 'ray' has Ray Serve as well")

pytestmark = [
    # Ray leaves sockets and files to the end of its processes.
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.timeout(300),
]

PORT = 18123
NAME = f"digits{os.getpid()}"


def body_of(images: npt.NDArray[np.int8]) -> bytes:
    """A request of the Open Inference Protocol."""
    tensor = {
        "name": "image",
        "datatype": "INT8",
        "shape": [*images.shape],
        "data": images.ravel().tolist(),
    }
    return json.dumps({"inputs": [tensor]}).encode()


def post(path: str, body: bytes) -> tuple[int, Any]:
    """Status and document of an answer."""
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", data=body)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def application(**of_serve: Any) -> Any:
    """Two replicas of the digits model, and the same model as another one."""
    return armpy_serving.ray.deployment(
        DIGITS,
        name=NAME,
        num_replicas=2,
        num_cpus=0.5,
        models={"other": DIGITS},
        options={"signature": "serving_default"},
        health_check_period_s=1,
        **of_serve,
    )


@pytest.fixture(scope="module")
def served() -> Iterator[Any]:
    """A handle of the deployment."""
    from ray import serve

    with ray_node(ray):
        serve.start(http_options={"host": "127.0.0.1", "port": PORT})
        yield serve.run(application(), route_prefix="/")
        serve.shutdown()


def test_requests_are_answered_with_rows_or_with_whose_fault_it_is(served: Any) -> None:
    images = pixels(np.arange(3))
    for model in (NAME, "other"):
        status, document = post(f"/v2/models/{model}/infer", body_of(images))
        assert status == 200
        assert document["outputs"][0]["data"] == expected(3).ravel().tolist()
    status, answer = post("/v2/models/none/infer", body_of(images))
    assert (status, "unknown model" in answer) == (404, True)
    status, answer = post(f"/v2/models/{NAME}/infer", b"no request")
    assert (status, "not JSON" in answer) == (400, True)
    status, answer = post(f"/v2/models/{NAME}/infer", body_of(images[:, :3]))
    assert (status, "shape" in answer) == (400, True)
    # More rows than the batcher of a replica has room for.
    status, document = post(f"/v2/models/{NAME}/infer", body_of(pixels(np.arange(200))))
    assert status == 200
    assert document["outputs"][0]["data"] == expected(200).ravel().tolist()
    answer = served.infer.remote({"image": images}).result()
    np.testing.assert_array_equal(answer["output_0"], expected(3))


@pytest.mark.parametrize(
    ("path", "expected_route"),
    [
        ("/", ("", "any")),
        ("/v2/health/live", ("", "health")),
        ("/v2/health/ready", ("", "ready")),
        ("/v2/models/ready", ("ready", "metadata")),
        ("/v2/models/ready/ready", ("ready", "ready")),
        ("/app/v2/models/v2/infer", ("v2", "infer")),
    ],
)
def test_names_of_models_are_no_words_of_paths(path: str, expected_route: tuple[str, str]) -> None:
    from armpy_serving.ray.deployment import _route

    assert _route({"path": path, "root_path": "/app" if path.startswith("/app") else ""}) == (
        expected_route
    )


def test_a_call_by_a_handle_names_its_inputs(served: Any) -> None:
    with pytest.raises(Exception, match="not given by name"):  # as Ray wraps it
        served.infer.remote([1]).result()
