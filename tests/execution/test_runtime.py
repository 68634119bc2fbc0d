from __future__ import annotations

from dataclasses import replace

import pytest
from armpy_reference import ReferenceBackend

import armpy
from armpy.backend import IBackendContext
from armpy.errors import (
    ArmpyError,
    BackendCapabilityError,
    BackendError,
    BackendUnavailableError,
    DeviceNotFoundError,
    InvalidArgumentError,
    LayerValidationError,
    MemoryLimitError,
)
from armpy.execution import Runtime, RuntimeOptions
from armpy.execution.setup import backends as setup
from armpy.graph.network import Network
from armpy.model import Model
from armpy.plugins import CandidateStatus
from armpy.types import DeviceType
from armpy_testing.backends.fake_backends import (
    FakeBackend,
    RecordingContext,
    registry_of,
    runtime_of,
)
from armpy_testing.models.networks import RELU, chain, f32, floats

EVENTS = [
    "before_load_network",
    "after_load_network",
    "before_unload_network",
    "after_unload_network",
]


@pytest.fixture
def log() -> list[tuple[str, str, int]]:
    return []


@pytest.fixture
def runtime() -> Runtime:
    return runtime_of()


@pytest.mark.parametrize("wrong", [None, "model.tflite"])
def test_something_that_is_no_network_is_rejected(runtime: Runtime, wrong: object) -> None:
    with pytest.raises(
        InvalidArgumentError, match="a Network or Graph; got " + type(wrong).__name__
    ):
        runtime.load_network(wrong)  # type: ignore[arg-type]  # untyped callers do this


def test_contexts_are_notified_in_order_about_every_network(
    log: list[tuple[str, str, int]],
) -> None:
    runtime = runtime_of(
        FakeBackend("A", context=RecordingContext("A", log)),
        FakeBackend("B", context=RecordingContext("B", log)),
    )
    runtime.unload_network(runtime.load_network(chain()))
    assert log == [(name, event, 0) for event in EVENTS for name in "AB"]


def test_a_network_that_cannot_be_loaded_is_announced_and_gone(
    log: list[tuple[str, str, int]],
) -> None:
    registry = registry_of(FakeBackend("A", (), context=RecordingContext("A", log)))
    runtime = Runtime(RuntimeOptions(["A"], registry=registry))
    with pytest.raises(BackendCapabilityError):
        runtime.load_network(chain())
    assert log == [("A", "before_load_network", 0), ("A", "after_unload_network", 0)]
    with pytest.raises(InvalidArgumentError, match="no network is loaded under the id 0"):
        runtime.get_network(0)


def test_contexts_are_notified_after_every_execution(log: list[tuple[str, str, int]]) -> None:
    errors: list[Exception] = []

    def fail() -> None:
        for error in errors:
            raise error

    backend = FakeBackend("A", context=RecordingContext("A", log), before_execute=fail)
    runtime = runtime_of(backend)
    model = Model(chain(), runtime)
    bound = model.bind({"x": floats(0, 0, 0, 0)})
    log.clear()
    model(floats(0, 0, 0, 0))
    model.run({"x": floats(0, 0, 0, 0)})
    runtime.enqueue_workload(model.network_id, {"x": floats(0, 0, 0, 0)})
    assert log == [("A", "after_enqueue_workload", 0)] * 3
    with pytest.raises(InvalidArgumentError, match="number of inputs"):
        model()
    assert len(log) == 3
    errors.append(OSError("the device is lost"))
    for execute in (bound, lambda: model(floats(0, 0, 0, 0))):
        with pytest.raises(BackendError, match="the device is lost"):
            execute()
    assert len(log) == 5


def test_a_context_that_raises_after_an_execution_is_logged_and_loses_no_result(
    log: list[tuple[str, str, int]], caplog: pytest.LogCaptureFixture
) -> None:
    context = RecordingContext("A", log, {"after_enqueue_workload": ValueError("oops")})
    model = Model(chain(), runtime_of(FakeBackend("A", context=context)))
    assert model(floats(0, 0, 0, 0))[0] == 3
    assert "A / after_enqueue_workload: the backend raised ValueError('oops')" in caplog.text


@pytest.mark.parametrize("event", EVENTS)
def test_every_context_is_notified_also_if_others_raise(
    event: str, log: list[tuple[str, str, int]], caplog: pytest.LogCaptureFixture
) -> None:
    backends = [
        FakeBackend(name, context=RecordingContext(name, log, {event: ValueError(name)}))
        for name in "AB"
    ]
    runtime = runtime_of(*backends, FakeBackend("C", context=RecordingContext("C", log)))
    with pytest.raises(BackendError, match=rf"^A / {event}: .*ValueError\('A'\)"):
        runtime.unload_network(runtime.load_network(chain()))
    first = log.index(("A", event, 0))
    assert log[first : first + 3] == [(name, event, 0) for name in "ABC"]
    assert f"B / {event}: the backend raised ValueError('B')" in caplog.text
    if event != "before_unload_network":  # then it is not unloaded
        with pytest.raises(InvalidArgumentError, match="no network is loaded under the id 0"):
            runtime.get_network(0)


def heard(log: list[tuple[str, str, int]], name: str) -> list[str]:
    """Notifications of one context."""
    return [event.removesuffix("_network") for who, event, _ in log if who == name]


def test_contexts_that_heard_of_a_load_hear_that_another_one_has_refused_it(
    log: list[tuple[str, str, int]],
) -> None:
    faults = {"after_load_network": ValueError("full")}
    runtime = runtime_of(
        FakeBackend("A", context=RecordingContext("A", log)),
        FakeBackend("B", context=RecordingContext("B", log, faults)),
        FakeBackend("C", context=RecordingContext("C", log)),
    )
    with pytest.raises(BackendError, match=r"^B / after_load_network: .*full"):
        runtime.load_network(chain())
    whole = ["before_load", "after_load", "before_unload", "after_unload"]
    assert heard(log, "A") == heard(log, "C") == whole
    assert heard(log, "B") == ["before_load", "after_load", "after_unload"]
    faults.clear()
    assert runtime.load_network(chain()) == 1  # the id of a refused load is not used again


def test_contexts_that_agreed_to_an_unload_hear_that_another_one_has_refused_it(
    log: list[tuple[str, str, int]],
) -> None:
    refusing = RecordingContext("B", log, {"before_unload_network": ValueError("busy")})
    runtime = runtime_of(
        FakeBackend("A", context=RecordingContext("A", log)), FakeBackend("B", context=refusing)
    )
    network = runtime.load_network(chain())
    with pytest.raises(BackendError, match="busy"):
        runtime.unload_network(network)
    assert heard(log, "A") == ["before_load", "after_load", "before_unload", "after_load"]
    assert runtime.enqueue_workload(network, {"x": floats(0, 0, 0, 0)})["y"][0] == 3
    log.clear()
    refusing.faults = {}
    runtime.unload_network(network)
    assert heard(log, "A")[-2:] == ["before_unload", "after_unload"]


def test_a_refused_unload_takes_place_when_the_runtime_closes_and_all_hear_of_it(
    log: list[tuple[str, str, int]],
) -> None:
    faults = {"before_unload_network": ValueError("busy")}
    runtime = runtime_of(
        FakeBackend("A", context=RecordingContext("A", log)),
        FakeBackend("B", context=RecordingContext("B", log, faults)),
    )
    runtime.load_network(chain())
    with pytest.raises(BackendError, match="busy"):
        runtime.close()
    for name in "AB":
        assert heard(log, name)[2:] == ["before_unload", "after_unload"]


def test_of_two_threads_that_unload_a_network_one_gets_an_error() -> None:
    class Waiting(IBackendContext):
        def before_unload_network(self, network_id: int) -> None:
            with pytest.raises(InvalidArgumentError, match="network 0 is being unloaded"):
                loaded.unload_network(network_id)

    loaded = runtime_of(FakeBackend("A", context=Waiting()))
    loaded.unload_network(loaded.load_network(chain()))


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (BackendUnavailableError("no device"), "no device"),
        (ValueError("oops"), r"raised ValueError\('oops'\)"),
        (LayerValidationError("not now"), "not now"),
        (InvalidArgumentError("no such port"), "no such port"),
        (SystemExit(2), r"raised SystemExit\(2\)"),
        (
            "no context",
            "create_backend_context: .*Expected IBackendContext or None; got 'no context'",
        ),
    ],
)
def test_a_backend_without_its_device_is_left_out_unless_it_was_named(
    fault: object,
    text: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(setup, "_warnings", set())
    broken = FakeBackend("Broken", faults={"create_backend_context": fault})
    runtime = Runtime(RuntimeOptions(registry=registry_of(broken, ReferenceBackend())))
    spec = runtime.get_device_spec()
    assert spec.supported_backends == ("CpuRef",)
    by_id = {candidate.backend_id: candidate for candidate in spec.candidates}
    assert by_id["Broken"].status is CandidateStatus.FAILED
    assert by_id["CpuRef"].status is CandidateStatus.REGISTERED
    assert "backend 'Broken' is left out" in caplog.text
    with pytest.raises(ArmpyError, match=text):
        raise ArmpyError(by_id["Broken"].reason)
    with pytest.raises(ArmpyError, match="Broken.*" + text):
        runtime_of(broken)


def test_a_runtime_needs_a_backend() -> None:
    with pytest.raises(BackendUnavailableError, match="no backend can be used"):
        Runtime(RuntimeOptions(registry=registry_of()))
    broken = FakeBackend(faults={"create_backend_context": BackendUnavailableError("no device")})
    with pytest.raises(BackendUnavailableError, match=r"no backend can be used. Got .*no device"):
        Runtime(RuntimeOptions(registry=registry_of(broken)))


def test_without_names_the_kind_of_device_decides_then_the_id() -> None:
    registry = registry_of(
        ReferenceBackend(),
        FakeBackend("Z", device_type=DeviceType.GPU),
        FakeBackend("B", device_type=DeviceType.CPU_COMPILED),
        FakeBackend("A", device_type=DeviceType.CPU_COMPILED),
    )
    spec = Runtime(RuntimeOptions(registry=registry)).get_device_spec()
    assert spec.supported_backends == ("Z", "A", "B", "CpuRef")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"num_threads": 0}, "num_threads: .*1 to 256; got 0"),
        ({"backends": "CpuRef"}, r"a sequence of ids; got 'CpuRef'"),
        ({"code": "any"}, "code: .* Expected 'trusted', 'signed' or 'never'; got 'any'"),
        ({"trusted_keys": "key.pem"}, r"a sequence of keys; got 'key.pem'"),
        ({"trusted_keys": ["ed25519:AAAA"]}, r"trusted_keys, .* 32 bytes .*; got 3 bytes"),
    ],
)
def test_options_that_cannot_be_used_are_rejected(options: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        RuntimeOptions(**options)  # type: ignore[arg-type]  # wrong on purpose


def test_trusted_keys_are_held_as_bytes_once_each() -> None:
    text = "ed25519:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
    options = RuntimeOptions(trusted_keys=[text, b"\1" * 32, b"\2" * 32])
    assert options.trusted_keys == (b"\1" * 32, b"\2" * 32)
    assert replace(options, code="signed").trusted_keys == options.trusted_keys


def test_a_network_that_needs_more_than_the_memory_limit_is_rejected() -> None:
    # The results take 16 bytes, and two aligned buffers 128.
    runtime = runtime_of(memory_limit_bytes=143)
    with pytest.raises(MemoryLimitError, match=r"at most 143 bytes .*got 144 bytes"):
        runtime.load_network(chain())
    assert runtime_of(memory_limit_bytes=144).load_network(chain()) == 0
    assert runtime_of(memory_limit_bytes=16).load_network(chain(1)) == 0
    with pytest.raises(MemoryLimitError, match=r"'add_0'.*at most 15 bytes .*got 16 bytes"):
        runtime_of(memory_limit_bytes=15).load_network(chain(1))


def test_a_runtime_is_closed_even_if_contexts_raise(log: list[tuple[str, str, int]]) -> None:
    faults = {"before_unload_network": ValueError("oops")}
    backend = FakeBackend("A", context=RecordingContext("A", log, faults))
    runtime = runtime_of(backend)
    ids = [runtime.load_network(chain()) for _ in range(3)]
    with pytest.raises(BackendError, match="oops"):
        runtime.close()
    for network_id in ids:
        with pytest.raises(InvalidArgumentError, match="no network is loaded"):
            runtime.get_network(network_id)


def test_a_model_that_cannot_be_loaded_closes_its_runtime() -> None:
    runtime = runtime_of(memory_limit_bytes=1)
    with pytest.raises(MemoryLimitError):
        Model(chain(), runtime, closes_runtime=True)
    assert runtime.is_closed


def test_a_tensor_that_no_array_can_be_is_refused_before_it_is_made() -> None:
    net = Network()
    shape = (0, 2**31, 2**31)
    net.output("y", net.add(RELU, net.input("x", f32(*shape))))
    with pytest.raises(MemoryLimitError, match="dimensions that no array can have"):
        runtime_of().load_network(net)


@pytest.mark.parametrize("options", [{"backends": ["CpuRef"]}, "CpuRef", 0])
def test_options_of_another_kind_are_refused(options: object) -> None:
    """Nothing that is false stands for the defaults."""
    text = r"RuntimeOptions or None; got .*RuntimeOptions\(backends="
    with pytest.raises(InvalidArgumentError, match=rf"^Runtime.options: .*{text}"):
        armpy.Runtime(options)  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize("runtime", [0, "CpuRef", armpy.Runtime])
def test_a_runtime_of_another_kind_is_refused(runtime: object) -> None:
    text = r"runtime: .*Expected Runtime; got"
    with pytest.raises(InvalidArgumentError, match=text):
        armpy.Model(chain(), runtime)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(InvalidArgumentError, match=text):
        armpy.load(b"", runtime=runtime)  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("backends", 5, "a sequence of ids"),
        ("caching", {}, "CompilationCaching"),
        ("isolation_limits", None, "IsolationLimits"),
        ("probe", "yes", "bool"),
        ("profiling", 1, "bool"),
        ("protected_mode", None, "bool"),
        ("registry", {}, "BackendRegistry or None"),
        ("trust_insecure_paths", 0, "bool"),
        ("trusted_keys", 7, "a sequence of keys"),
    ],
)
def test_an_option_of_another_kind_is_refused(name: str, value: object, expected: str) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"{name}: .*Expected {expected}; got"):
        armpy.RuntimeOptions(**{name: value})  # type: ignore[arg-type]  # on purpose


def test_a_device_that_most_machines_lack_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    absent = FakeBackend("Npu", faults={"create_backend_context": DeviceNotFoundError("no NPU")})
    registry = registry_of(absent, ReferenceBackend())
    with caplog.at_level("INFO"):
        runtime = Runtime(RuntimeOptions(registry=registry))
    (record,) = [record for record in caplog.records if "is left out" in record.getMessage()]
    assert record.levelname == "INFO"
    assert [backend.get_id() for backend in runtime.backends] == ["CpuRef"]
    with pytest.raises(DeviceNotFoundError, match="no NPU"):
        Runtime(RuntimeOptions(["Npu"], registry=registry))
