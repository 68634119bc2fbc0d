"""Wrong requests are refused with the status that says whose fault it is, over HTTP and gRPC."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from armpy_serving.protocol_kit.answers import check_error

from .kserve_server import KServeProcess

pytest.importorskip("kserve", reason="kserve is not installed")


def good() -> dict[str, Any]:
    """A right request, which each case spoils."""  # Any: JSON
    return {
        "inputs": [
            {"name": "x:0", "datatype": "FP32", "shape": [1, 2], "data": [0.1, -2]},
            {"name": "n", "datatype": "INT32", "shape": [3], "data": [1, 2, 3]},
            {"name": "flags", "datatype": "BOOL", "shape": [2], "data": [True, False]},
            {"name": "q", "datatype": "INT8", "shape": [], "data": [1]},
        ]
    }


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "identity, gzip"])
def test_a_compressed_body_is_415(server: KServeProcess, encoding: str) -> None:
    body, headers = gzip.compress(json.dumps(good()).encode()), {"Content-Encoding": encoding}
    status, _, answer = server.send("POST", "/v2/models/mixed/infer", body, headers)
    assert status == 415
    text = check_error(status, answer)
    assert "Content-Encoding" in text
    assert f"got '{encoding}'" in text
    assert "uncompressed" in text


NO_VERSION = "request: models have no versions. Expected none; got '1'. Leave the version out."


@pytest.mark.parametrize(
    ("verb", "path", "body"),
    [
        ("GET", "", None),
        ("GET", "/ready", None),
        ("POST", "/infer", json.dumps(good()).encode()),
        ("POST", "/infer", b"{}"),
        ("POST", "/infer", b"{"),
    ],
)
def test_a_version_is_501_whatever_the_body(
    server: KServeProcess, verb: str, path: str, body: bytes | None
) -> None:
    headers = {"Content-Type": "application/json"}
    status, _, answer = server.send(verb, f"/v2/models/mixed/versions/1{path}", body, headers)
    assert (status, check_error(status, answer)) == (501, NO_VERSION)
