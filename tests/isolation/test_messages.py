"""What workers say that keeps to no protocol: one clear error each."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from armpy import DataType, IsolationLimits, TensorInfo, ops
from armpy.core.processes.protocol import WorkerGoneError, error_from_fields
from armpy.errors import BackendError
from armpy.execution.isolation.backend import IsolatedBackend, _Support
from armpy.execution.isolation.messages import parse_failure

PACKETS = [
    b"\1",
    b"\0\0",
    b"\xff" * 64,
    b"null",
    b"[]",
    b"{}",
    b'"text"',
    b"[" * 16_000,
    b'{"kind": "BackendError"}',
    b'{"kind": "BackendError", "failed": ""}',
    b'{"kind": "BackendError", "failed": 1e999}',
    b'{"kind": ["BackendError"], "failed": "x"}',
    b'{"kind": "BackendError", "failed": "x", "fix": null}',
    b'{"kind": "BackendError", "failed": "x"',
    b'{"kind": "BackendError", "failed": ' + b"9" * 5000 + b"}",
]


@pytest.mark.parametrize("packet", PACKETS, ids=range(len(PACKETS)))
def test_packet_that_tells_no_error_is_none_of_the_protocol(packet: bytes) -> None:
    with pytest.raises(WorkerGoneError, match=r"its error cannot be read: .+"):
        error_from_fields(parse_failure(packet))


def test_packet_of_an_error_is_that_error() -> None:
    fields = {"kind": "BackendError", "failed": "it broke", "where": "Npu", "fix": "Mend it."}
    error = error_from_fields(parse_failure(json.dumps(fields).encode()))
    assert str(error) == "Npu: it broke. Mend it."


class Saying:
    """In the place of a supervisor, and of its worker, that answers the same always."""

    def get_id(self) -> str:
        return "Npu"

    limits = IsolationLimits()

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def with_worker(self, task: Callable[[Any], object]) -> object:
        return task(self)

    def request(self, request: object, *, timeout_s: float) -> object:
        return self._answer


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"is_supported": 1},
        {"is_supported": False},
        {"is_supported": False, "code": "other"},
        {"is_supported": False, "code": "none of them", "text": "x"},
        {"is_supported": False, "code": [], "text": "x"},
        {"is_supported": False, "code": "other", "text": 3},
    ],
)
def test_answer_about_a_layer_that_says_nothing_is_an_error(answer: object) -> None:
    support = _Support(Saying(answer), {})  # type: ignore[arg-type]
    info = TensorInfo((1,), DataType.FLOAT32)
    operation = ops.ElementwiseUnary(ops.UnaryOperation.NEG)
    with pytest.raises(BackendError, match=r"Npu / is_layer_supported: .* cannot be read\. Got"):
        support.is_layer_supported(operation, [info], [info])


def read(backend: IsolatedBackend, name: str) -> None:
    """Ask for what a property or method tells."""
    member = getattr(backend, name)
    member()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("backend_id", 3),
        ("version", None),
        ("device_type", "TOASTER"),
        ("feature_level", "30"),
        ("supported_extensions", "all"),
        ("options", [{}]),
        ("options", [3]),
        ("options", [{"name": "x", "default": 1, "help": "", "scope": "moon", "choices": []}]),
        ("get_device_figures", {"figures": 3}),
        ("get_capabilities", None),
    ],
)
def test_description_that_cannot_be_read_is_an_error(name: str, said: object) -> None:
    backend = object.__new__(IsolatedBackend)
    key = {"get_device_figures": "figures", "get_capabilities": "capabilities"}.get(name, name)
    backend._said = {key: said}
    backend._source = Saying(None)  # type: ignore[assignment]
    with pytest.raises(BackendError, match=r"^Npu / \w+: .* cannot be read\. .*[Gg]ot "):
        read(backend, name)
