"""Properties of one network: they reach what they configure, or are an error."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.backend import (
    BackendOption,
    IBackendModelContext,
    ILayerSupport,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    OptionScope,
    OptionValues,
    PreparationRequest,
)
from armpy.errors import (
    BackendError,
    ExecutionTimeoutError,
    InvalidArgumentError,
    MemoryLimitError,
)
from armpy.execution import NetworkProperties, Runtime, RuntimeOptions
from armpy.model import Model
from armpy_testing.backends.device_memory import DeviceBackend
from armpy_testing.backends.fake_backends import (
    FakeBackend,
    FakeFactory,
    FunctionWorkload,
    Handles,
    Outputs,
    Step,
    runtime_of,
)
from armpy_testing.backends.slow_backend import SlowBackend
from armpy_testing.models.networks import chain, floats

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
X = floats(0, 1, 2, 3)
EXTERNAL = NetworkProperties(external_memory=True)


class ModelContext(IBackendModelContext):
    """Keeps a network's options."""

    def __init__(self, options: OptionValues) -> None:
        self.options = options


class Crowded(FakeBackend):
    """Counts the executions of its layers that are under way at once."""

    def __init__(self) -> None:
        super().__init__("Npu", before_execute=self._enter)
        self._lock = threading.Lock()
        self._now = 0
        self.most_at_once = 0
        self.fails = False

    def _enter(self) -> None:
        if self.fails:
            raise BackendError("the device has failed")
        with self._lock:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        time.sleep(0.005)  # others come meanwhile, unless they wait
        with self._lock:
            self._now -= 1


class Shifting(FakeBackend):
    """Each layer gives so much more as the model option says; it is read from the context."""

    options = (
        BackendOption("shift", 0.0, "What to add.", OptionScope.MODEL),
        BackendOption("refuse", False, "Whether to take nothing.", OptionScope.MODEL),
        BackendOption("power", 1, "Of the whole device."),
    )

    def create_backend_specific_model_context(
        self, model_options: OptionValues
    ) -> IBackendModelContext:
        return ModelContext(model_options)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        if network.model_context is None:
            return super().create_workload_factory(network)
        assert isinstance(network.model_context, ModelContext)
        assert network.model_context.options == network.model_options
        shift = network.model_context.options["shift"]
        assert isinstance(shift, float)

        def wrap(step: Step) -> IWorkload:
            def execute(inputs: Handles, outputs: Outputs) -> None:
                step.right.execute(inputs, outputs)
                array = outputs[0].map()
                array += np.float32(shift)
                outputs[0].unmap()

            return FunctionWorkload(execute)

        return FakeFactory(wrap=wrap)

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        if request.model_options.get("refuse"):
            return FakeBackend(self.get_id(), ()).get_layer_support(request)
        return super().get_layer_support(request)


def with_options(**options: object) -> NetworkProperties:
    return NetworkProperties(model_options={"Shift": options})


def first_result(runtime: Runtime, properties: NetworkProperties | None = None) -> float:
    """First result of three additions of 1 to 0."""
    network = runtime.load_network(chain(), properties)
    return float(runtime.enqueue_workload(network, {"x": X})["y"][0])


def test_a_networks_options_come_before_the_runtimes_one_by_one() -> None:
    runtime = runtime_of(Shifting("Shift"), backend_options={"Shift": {"shift": 2.0}})
    assert first_result(runtime) == 9
    assert first_result(runtime, with_options(shift=1.0)) == 6
    assert first_result(runtime, with_options(refuse=False)) == 9
    assert first_result(runtime, with_options()) == 9
    assert first_result(runtime) == 9


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"Shift": {"shft": 1.0}}, "^Shift: .* no option 'shft'.*Did you mean 'shift'"),
        ({"Shift": {"shift": "1"}}, "^Shift: the option 'shift' cannot have this value"),
        ({"Shift": {"power": 1}}, "^Shift: the option 'power' is the runtime's, not one network's"),
        ({"Npu": {}}, "^model_options: the runtime does not use a backend 'Npu'.*Shift, CpuRef"),
    ],
)
def test_model_options_that_would_be_ignored_are_errors(
    options: dict[str, dict[str, object]], text: str
) -> None:
    runtime = runtime_of(Shifting("Shift"))
    with pytest.raises(InvalidArgumentError, match=text):
        runtime.load_network(chain(), NetworkProperties(model_options=options))
    assert first_result(runtime) == 3


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"model_options": 5}, "^model_options: .*Expected Mapping; got 5"),
        ({"model_options": {"A": 5}}, r"^model_options\['A'\]: .*Expected Mapping; got 5"),
        ({"input_source": 1}, "^input_source: .*Expected MemorySource; got 1"),
        ({"output_source": "Malloc"}, "^output_source: .*Expected MemorySource; got 'Malloc'"),
        ({"profiling": "yes"}, "^profiling: .*Expected bool or None; got 'yes'"),
        ({"external_memory": 1}, "^external_memory: .*Expected bool; got 1"),
    ],
)
def test_properties_of_the_wrong_type_are_errors(given: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        NetworkProperties(**given)  # type: ignore[arg-type]  # that is the point


def test_a_files_network_and_its_signatures_are_loaded_with_the_properties() -> None:
    runtime = Runtime(RuntimeOptions(backends=["CpuRef"]))
    model = armpy.load(DIGITS, runtime=runtime, properties=NetworkProperties(profiling=True))
    assert runtime.get_profiler(model.network_id) is not None
    for name in model.signatures:
        assert runtime.get_profiler(model.signature(name).network_id) is not None


class TestExternalMemory:
    """All working memory is the application's."""

    def test_nothing_is_made_but_what_the_application_makes(self) -> None:
        backend = DeviceBackend()
        model = Model(chain(), runtime_of(backend), properties=EXTERNAL)
        assert backend.memory.most_bytes == 0
        with model.create_working_memory() as first, model.create_working_memory() as other:
            assert backend.memory.used_bytes == first.size_bytes + other.size_bytes > 0
            for memory in (first, other, first):
                result = model.run({"x": X}, memory=memory)["y"]
                np.testing.assert_array_equal(result, X + 3)
            assert backend.memory.most_bytes == first.size_bytes + other.size_bytes
        assert backend.memory.used_bytes == 0

    def test_executions_without_it_are_an_error(self) -> None:
        backend = DeviceBackend()
        runtime = runtime_of(backend)
        model = Model(chain(), runtime, properties=EXTERNAL)
        calls: list[Callable[[], object]] = [
            lambda: model(X),
            lambda: model.run({"x": X}),
            lambda: runtime.enqueue_workload(model.network_id, {"x": X}),
            lambda: model.bind({"x": X}),
        ]
        for call in calls:
            with pytest.raises(InvalidArgumentError, match=r"external_memory.*create_working_mem"):
                call()
        assert backend.memory.most_bytes == 0


class TestQuotas:
    """Executions of one network take no more than its quotas, and those of others go on."""

    def test_a_network_has_a_memory_limit_of_its_own(self) -> None:
        needed = 144
        runtime = runtime_of(memory_limit_bytes=1000)
        load = runtime.load_network
        assert load(chain(), NetworkProperties(memory_limit_bytes=needed)) == 0
        with pytest.raises(MemoryLimitError, match=f"at most {needed - 1} bytes"):
            load(chain(), NetworkProperties(memory_limit_bytes=needed - 1))
        np.testing.assert_array_equal(Model(chain(), runtime)(X), X + 3)

    def test_the_runtimes_memory_limit_counts_where_it_is_smaller(self) -> None:
        runtime = runtime_of(memory_limit_bytes=143)
        with pytest.raises(MemoryLimitError, match="at most 143 bytes"):
            runtime.load_network(chain(), NetworkProperties(memory_limit_bytes=1000))

    @pytest.mark.parametrize("profiling", [False, True])
    @pytest.mark.parametrize("way", ["run", "bound"])
    def test_no_more_executions_run_than_the_quota_allows(self, way: str, profiling: bool) -> None:
        backend = Crowded()
        properties = NetworkProperties(max_executions=2, profiling=profiling)
        model = Model(chain(), runtime_of(backend), properties=properties)

        def call(_: int) -> object:
            return model.run({"x": X})["y"] if way == "run" else model.bind({"x": X})()["y"]

        with ThreadPoolExecutor(6) as pool:
            results = list(pool.map(call, range(12)))
        assert backend.most_at_once == 2
        for result in results:
            np.testing.assert_array_equal(result, X + 3)

    def test_other_networks_do_not_wait_for_a_place(self) -> None:
        backend = SlowBackend(looks=True)
        runtime = runtime_of(backend)
        quota = NetworkProperties(max_executions=1)
        first, second = (Model(chain(2), runtime, properties=quota) for _ in range(2))
        under_way = first.start({"x": X})
        assert backend.entered.wait(10)
        backend.entered.clear()
        other = second.start({"x": X})
        assert backend.entered.wait(10)
        backend.gate.set()
        for future in (under_way, other):
            np.testing.assert_array_equal(future.result(10)["y"], X + 2)

    @pytest.mark.parametrize("way", ["run", "bound"])
    def test_a_deadline_ends_the_wait_for_a_place(self, way: str) -> None:
        backend = SlowBackend(looks=True)
        properties = NetworkProperties(max_executions=1)
        model = Model(chain(2), runtime_of(backend), properties=properties)
        under_way = model.start({"x": X})
        assert backend.entered.wait(10)
        bound = model.bind({"x": X}, deadline_s=0.05)
        calls: dict[str, Callable[[], object]] = {
            "bound": bound,
            "run": lambda: model.run({"x": X}, deadline_s=0.05),
        }
        with pytest.raises(ExecutionTimeoutError):
            calls[way]()
        backend.gate.set()
        np.testing.assert_array_equal(under_way.result(10)["y"], X + 2)
        np.testing.assert_array_equal(model.run({"x": X})["y"], X + 2)

    def test_a_failed_execution_gives_its_place_back(self) -> None:
        backend = Crowded()
        model = Model(chain(), runtime_of(backend), properties=NetworkProperties(max_executions=1))
        backend.fails = True
        for _ in range(2):
            with pytest.raises(BackendError):
                model.run({"x": X}, deadline_s=10)
        backend.fails = False
        np.testing.assert_array_equal(model.run({"x": X}, deadline_s=10)["y"], X + 3)
