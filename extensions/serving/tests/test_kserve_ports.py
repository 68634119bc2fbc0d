"""Ports of KServe's server that are taken are errors in words."""

from __future__ import annotations

import socket

import pytest

from armpy.errors import InvalidArgumentError
from armpy_serving.kserve.ports import check_free


def test_a_taken_port_is_named_with_its_option() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        text = (
            rf"^--grpc_port {port}: the server cannot listen there: .*127\.0\.0\.1.*\. "
            r"Stop the server that has the port, or choose another one\.$"
        )
        with pytest.raises(InvalidArgumentError, match=text):
            check_free("127.0.0.1", port, "--grpc_port")
    check_free("127.0.0.1", port, "--grpc_port")  # and stays free
    check_free("127.0.0.1", port, "--grpc_port")
