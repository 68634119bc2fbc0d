"""What workers say that keeps to no protocol: one clear error each."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from armpy import DataType, IsolationLimits, TensorInfo, ops
from armpy.backend import (
    BackendOption,
    Capability,
    DeviceFigures,
    DeviceInfo,
    Numerics,
    OptionScope,
    PerformanceFigures,
    PreparationRequest,
)
from armpy.core.processes.protocol import WorkerGoneError, error_from_fields
from armpy.errors import BackendError
from armpy.plugins import PluginOptions
from armpy.plugins.isolation.backend import _Support
from armpy.plugins.isolation.messages import (
    PREPARE,
    RELEASE,
    BackendSource,
    facts_fields,
    facts_from,
    parse_failure,
)
from armpy.plugins.isolation.supervisor import IsolatedPart, Supervisor
from armpy.plugins.proxy.facts import read_facts
from armpy.types import DeviceType
from armpy_testing.backends.fake_backends import FakeBackend
from armpy_testing.models.networks import chain

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
def test_packet_without_an_error_is_not_of_the_protocol(packet: bytes) -> None:
    with pytest.raises(WorkerGoneError, match=r"its error cannot be read: .+"):
        error_from_fields(parse_failure(packet))


def test_packet_of_an_error_is_that_error() -> None:
    fields = {"kind": "BackendError", "failed": "it broke", "where": "Npu", "fix": "Mend it."}
    error = error_from_fields(parse_failure(json.dumps(fields).encode()))
    assert str(error) == "Npu: it broke. Mend it."


class Saying:
    """In the place of a supervisor, and of its worker, that answers the same always."""

    backend_id = "Npu"
    limits = IsolationLimits()
    preparing = threading.Lock()

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def with_worker(self, task: Callable[[Any], object]) -> object:
        return task(self)

    def request(self, request: object, descriptors: object, *, timeout_s: float) -> object:
        return self._answer


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"answers": {}},
        {"answers": []},
        {"answers": [1]},
        {"answers": [{"is_supported": 1}]},
        {"answers": [{"is_supported": False}]},
        {"answers": [{"is_supported": False, "code": "other"}]},
        {"answers": [{"is_supported": False, "code": "none of them", "text": "x"}]},
        {"answers": [{"is_supported": False, "code": [], "text": "x"}]},
        {"answers": [{"is_supported": False, "code": "other", "text": 3}]},
    ],
)
def test_answer_about_a_layer_that_says_nothing_is_an_error(answer: object) -> None:
    support = _Support(Saying(answer), PreparationRequest())  # type: ignore[arg-type]
    info = TensorInfo((1,), DataType.FLOAT32)
    operation = ops.ElementwiseUnary(ops.UnaryOperation.NEG)
    with pytest.raises(BackendError, match=r"Npu / is_layer_supported: .* cannot be read\. Got"):
        support.is_layer_supported(operation, [info], [info])


class Describing(FakeBackend):
    """Says something of itself wherever a backend can."""

    version = "1.4"
    supported_extensions = ("com.acme.math",)

    def get_devices(self) -> Sequence[DeviceInfo]:
        figures = DeviceFigures({DataType.FLOAT32: PerformanceFigures(0.5, 0.25)})
        return (
            DeviceInfo("small", DeviceType.GPU, 28, figures, Numerics(keeps_nan=False)),
            DeviceInfo("large", DeviceType.ACCELERATOR),
        )

    @property
    def options(self) -> Sequence[BackendOption]:
        return (
            BackendOption("depth", 1, "How deep.", minimum=0),
            BackendOption("way", "a", "Which way.", OptionScope.MODEL, choices=("a", "b")),
        )


def described() -> dict[str, Any]:
    """What a worker writes of that, as it comes out of a message."""
    text = json.dumps(facts_fields(read_facts(Describing("Npu"))))
    fields: dict[str, Any] = json.loads(text)
    return fields


def test_what_a_worker_says_of_its_backend_is_read_as_it_was() -> None:
    assert facts_from("Npu", described()) == read_facts(Describing("Npu"))


def test_what_concerns_the_applications_memory_is_left_out() -> None:
    fields = described()
    fields["capabilities"] |= {str(Capability.TRACED_SIZES): True, "com.acme.fast": 3}
    known = {Capability.NON_CONST_WEIGHTS: True, "com.acme.fast": 3}
    assert facts_from("Npu", fields).capabilities == known


DEVICE = described()["devices"][0]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("backend_id", 3),
        ("api_version", 2.0),
        ("version", None),
        ("code", None),
        ("devices", {}),
        ("devices", [3]),
        ("devices", [{"name": "small"}]),
        ("devices", [DEVICE | {"device_type": "TOASTER"}]),
        ("devices", [DEVICE | {"figures": 3}]),
        ("devices", [DEVICE | {"numerics": {"keeps_all": True}}]),
        ("supported_extensions", "all"),
        ("options", [{}]),
        ("options", [3]),
        ("options", [{"name": "x", "default": 1, "help": "", "scope": "moon", "choices": []}]),
        ("capabilities", None),
    ],
)
def test_description_that_cannot_be_read_is_an_error(name: str, said: object) -> None:
    with pytest.raises(BackendError, match=rf"^Npu / {name}: .* cannot be read\. .*[Gg]ot "):
        facts_from("Npu", described() | {name: said})


class NotedWorker:
    """Stands for a worker's process, and writes down what it is asked."""

    def __init__(self) -> None:
        self.description: dict[str, object] = {}
        self.prepared: set[int] = set()
        self.busy: set[object] = set()
        self.preparing = threading.Lock()
        self.requests: list[tuple[object, ...]] = []

    def configure(self, options: dict[str, object]) -> None:
        self.requests.append(("configure", options))

    def request(self, message: tuple[object, ...], *_: object, timeout_s: float) -> None:
        self.requests.append(message[:2])


def test_a_worker_is_asked_once_to_release_a_part_that_is_gone() -> None:
    noted = NotedWorker()
    worker: Any = noted  # in the place of a process
    limits = IsolationLimits(keep_spare=False)
    supervisor = Supervisor(BackendSource("Npu", PluginOptions()), limits, {"mode": 1}, worker)
    numbers = []
    for _ in range(3):  # the part before is gone each time
        part = IsolatedPart(chain(1), {}, relaxed=False)
        supervisor.add(part)
        for _ in range(2):
            supervisor.prepare(part, worker)
        numbers.append(part.number)
    first, second, third = numbers
    assert noted.requests == [
        ("configure", {"mode": 1}),
        (PREPARE, first),
        (RELEASE, first),
        (PREPARE, second),
        (RELEASE, second),
        (PREPARE, third),
    ]
    assert noted.prepared == {third}
