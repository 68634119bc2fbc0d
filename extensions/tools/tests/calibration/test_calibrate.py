"""Calibration of backends whose times are known by a clock of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import (
    BackendOption,
    DeviceFigures,
    DeviceInfo,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    OptionScope,
    PerformanceFigures,
    WorkloadInfo,
)
from armpy.compiler.devices import FigureSource, device_facts
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph.network import Network
from armpy.inspect import work_of
from armpy.model import Model
from armpy.ops import BinaryOperation, ElementwiseBinary
from armpy.ops.operation import Operation
from armpy.plugins import BackendProxy, BackendRegistry
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.backends.device_memory import DeviceBackend
from armpy_testing.backends.fake_backends import FakeBackend, registry_of
from armpy_testing.backends.slow_backend import SlowBackend
from armpy_tools.calibrate import calibrate
from armpy_tools.calibrate.workloads import random_inputs, reference_workloads, scalar_workloads
from armpy_tools.devices.backend_costs import costs_of
from armpy_tools.devices.costs import Rate
from armpy_tools.devices.store import FiguresStore

from .fake_time import FakeTime

Rates = Callable[[Operation, WorkloadInfo], Rate]


class TimedWorkload(IWorkload):
    """Computes nothing; its time passes at once."""

    def __init__(self, time: FakeTime, seconds: float, power: float) -> None:
        self._time, self._seconds, self._power = time, seconds, power

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        self._time.work(self._seconds, self._power)
        for handle in outputs:
            handle.map()[...] = 0  # so that loops end
            handle.unmap()


class TimedFactory(IWorkloadFactory):
    """Makes workloads that take what a rate says."""

    def __init__(self, time: FakeTime, rates: Rates) -> None:
        self._time, self._rates = time, rates

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        rate = self._rates(operation, info)
        work = work_of(operation, info.inputs, info.outputs)
        return TimedWorkload(self._time, rate.seconds(work), rate.power)


FAST_MATH = BackendOption("fast_math_enabled", False, "May be quick.", OptionScope.MODEL)
REFERENCE = Rate(8e-5, 4e-10, 2e-9, 1.0)


class Timed(FakeBackend):
    """A backend that takes a set time."""

    def __init__(
        self,
        backend_id: str,
        time: FakeTime,
        rates: Rates | Rate = REFERENCE,
        operations: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(backend_id, operations, **options)
        self._time = time
        self._rates = rates if callable(rates) else lambda *_: rates
        self.figures: DeviceFigures | None = None

    @property
    def version(self) -> str:
        return "3.2"

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        super().create_workload_factory(network)
        return TimedFactory(self._time, self._rates)

    def get_devices(self) -> Sequence[DeviceInfo]:
        return (DeviceInfo(figures=self.figures),)


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def store(tmp_path: Path) -> FiguresStore:
    return FiguresStore(tmp_path)


@pytest.fixture(autouse=True)
def few_workloads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only subjects that are quick to prepare, where no other ones are requested."""
    kinds = ("Convolution2d:pointwise", "ElementwiseBinary:ADD", "Softmax", "If", "While")
    few = [w for w in reference_workloads() if w.kind in kinds and "U8" not in w.name]
    monkeypatch.setattr("armpy_tools.calibrate.calibrating.reference_workloads", lambda: few)


def registry(time: FakeTime, *backends: FakeBackend) -> BackendRegistry:
    return registry_of(*backends, Timed("CpuRef", time))


@pytest.mark.slow
def test_rates_are_those_of_the_backend(time: FakeTime, store: FiguresStore) -> None:
    rate = Rate(1e-5, 2e-10, 1e-9, 0.5)
    reports = calibrate(registry(time, Timed("Fast", time, rate)), store=store, clock=time.clock)
    assert [report.backend for report in reports] == ["CpuRef", "Fast"]
    record = store.read("Fast", "3.2")
    assert record is not None
    assert record.costs.source is FigureSource.MEASURED
    assert record.costs.part_s == pytest.approx(0, abs=1e-9)
    assert record.costs.shares_host_memory
    for kind in ("Convolution2d:pointwise", "ElementwiseBinary:ADD", "Softmax"):
        for types in ("float32", "quant8"):
            fitted = record.costs.rates[f"{kind}/{types}"]
            work = work_of(ElementwiseBinary(BinaryOperation.ADD), [], [])
            assert fitted.seconds(work) == pytest.approx(1e-5, rel=0.01)
            assert fitted.power == pytest.approx(0.5)


@pytest.mark.slow
def test_figures_are_times_against_the_reference(time: FakeTime, store: FiguresStore) -> None:
    # An eighth of the time with twice the power for floats; twice the time for bytes.
    def rates(_: Operation, info: WorkloadInfo) -> Rate:
        first = next(info_read for info_read in info.inputs if info_read is not None)
        return REFERENCE.scaled(2.0) if first.data_type.is_quantized else REFERENCE.scaled(0.125, 2)

    calibrate(registry(time, Timed("Fast", time, rates)), store=store, clock=time.clock)
    record = store.read("Fast")
    assert record is not None
    figures = record.figures
    assert figures.tensors[DataType.FLOAT32].exec_time == pytest.approx(0.125, rel=1e-3)
    assert figures.tensors[DataType.FLOAT32].power_usage == pytest.approx(0.25, rel=1e-3)
    assert figures.tensors[DataType.QASYMM_S8].exec_time == pytest.approx(2.0, rel=1e-3)
    assert figures.scalars[DataType.FLOAT32].exec_time == pytest.approx(0.125, rel=1e-3)
    assert figures.if_ is not None
    assert figures.if_.exec_time == pytest.approx(0.125, rel=1e-3)
    assert figures.while_ is not None
    reference = store.read("CpuRef")
    assert reference is not None
    assert {pair.exec_time for pair in reference.figures.tensors.values()} == {1.0}


@pytest.mark.slow
def test_models_of_the_user_are_measured_and_count_in_the_figures(
    time: FakeTime, store: FiguresStore, tmp_path: Path
) -> None:
    def rates(_: Operation, info: WorkloadInfo) -> Rate:
        is_model = info.name == "of a model"
        return REFERENCE.scaled(0.5) if is_model else REFERENCE

    path = tmp_path / "sum.armpy"
    net = Network("sum")
    x = net.input("x", TensorInfo((2, 3), DataType.FLOAT16))
    add = ElementwiseBinary(BinaryOperation.ADD)
    net.output("y", net.add(add, x, x, name="of a model"))
    Model(net, Runtime(RuntimeOptions(["CpuRef"]))).save(path)
    backends = registry(time, Timed("Fast", time, rates))
    # CpuRef was measured without the model, so it is measured again.
    calibrate(backends, ["CpuRef"], store=store, clock=time.clock)
    reports = calibrate(backends, ["Fast"], store=store, clock=time.clock, models=[path])
    assert [report.backend for report in reports] == ["CpuRef", "Fast"]
    ((plain,), (fast,)) = (report.models for report in reports)
    assert (plain.title, plain.ratio, fast.title) == ("sum.armpy", 1.0, "sum.armpy")
    assert fast.ratio == pytest.approx(0.5, rel=1e-3)
    record = store.read("Fast")
    assert record is not None
    (name,) = (name for name in record.samples if name.startswith("model sum "))
    assert name.endswith("/FLOAT16/0")
    halves = [name for name in record.samples if "/FLOAT16/" in name and name[:6] != "scalar"]
    expected = 0.5 ** (1 / len(halves))  # the geometric mean with others, which take as long
    assert record.figures.tensors[DataType.FLOAT16].exec_time == pytest.approx(expected, rel=1e-3)
    # Models take no time of the workloads'.
    without = calibrate(backends, ["Fast"], store=store, clock=time.clock)[0].num_measured
    assert reports[1].num_measured == without + 1
    # The reference has it now.
    reports = calibrate(backends, ["Fast"], store=store, clock=time.clock, models=[path])
    assert [report.backend for report in reports] == ["Fast"]


@pytest.mark.slow
def test_what_is_not_supported_is_left_out_with_the_reason(
    time: FakeTime, store: FiguresStore
) -> None:
    fast = Timed("Fast", time, Rate(1e-5), operations=[ElementwiseBinary])
    _, report = calibrate(registry(time, fast), store=store, clock=time.clock)
    assert report.problem == ""
    assert "Fast does not do Softmax" in report.left_out["Softmax/FLOAT32/0"]
    assert "ElementwiseBinary:ADD/FLOAT32/0" not in report.left_out
    assert report.costs is not None
    assert not any(key.startswith("Softmax") for key in report.costs.rates)


@pytest.mark.slow
def test_the_time_is_kept_to_and_what_is_left_over_is_named(
    time: FakeTime, store: FiguresStore
) -> None:
    slow = Timed("Slow", time, Rate(0.01))
    _, report = calibrate(registry(time, slow), store=store, seconds=1.0, clock=time.clock)
    assert report.num_measured > 0
    assert "no time was left" in report.left_out.values()
    # The last one that was begun comes to its end: a loop of 6 calls of 9 layers at most.
    assert 1.0 <= report.seconds <= 1.0 + 6 * 9 * 0.01 + 1e-6


@pytest.mark.slow
def test_the_reference_is_measured_once(time: FakeTime, store: FiguresStore) -> None:
    both = registry(time, Timed("Fast", time, REFERENCE.scaled(0.5)))
    assert [r.backend for r in calibrate(both, ["Fast"], store=store, clock=time.clock)] == [
        "CpuRef",
        "Fast",
    ]
    (report,) = calibrate(both, ["Fast"], store=store, clock=time.clock)
    assert report.backend == "Fast"
    assert report.figures is not None
    assert report.figures.tensors[DataType.FLOAT32].exec_time == pytest.approx(0.5, rel=1e-3)


@pytest.mark.slow
def test_declared_figures_are_kept(time: FakeTime, store: FiguresStore) -> None:
    fast = Timed("Fast", time, REFERENCE.scaled(0.5))
    fast.figures = DeviceFigures({DataType.FLOAT32: PerformanceFigures(0.25, 0.75)})
    _, report = calibrate(registry(time, fast), store=store, clock=time.clock)
    assert report.is_declared
    assert report.figures == fast.figures
    assert device_facts(BackendProxy(fast)).figures == fast.figures
    costs = costs_of(BackendProxy(fast), store)
    assert costs.source is FigureSource.DECLARED
    overhead_s = costs.rate_of("ElementwiseBinary:ADD", "float32").overhead_s
    assert overhead_s == pytest.approx(REFERENCE.overhead_s / 4, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["execute", "create_workload_factory", "is_layer_supported"])
def test_a_backend_that_fails_has_a_problem_and_no_record(
    time: FakeTime, store: FiguresStore, method: str
) -> None:
    broken = FakeBackend("Broken", faults={method: RuntimeError("burnt out")})
    fine = Timed("Fine", time, Rate(1e-5))
    reports = calibrate(registry(time, broken, fine), store=store, clock=time.clock)
    problems = {report.backend: report.problem for report in reports}
    assert "burnt out" in problems["Broken"]
    assert problems["Fine"] == problems["CpuRef"] == ""
    assert store.read("Broken") is None


@pytest.mark.slow
def test_a_backend_that_hangs_is_not_waited_for(time: FakeTime, store: FiguresStore) -> None:
    slow = SlowBackend()  # in real time, of which a second passes at most
    try:
        both = registry_of(slow, Timed("CpuRef", time))
        calibrate(both, ["CpuRef"], store=store, clock=time.clock)
        (report,) = calibrate(both, ["Slow"], store=store, seconds=0.2)
    finally:
        slow.gate.set()
    assert slow.entered.is_set()
    assert "deadline" in report.problem
    assert report.figures is None


@pytest.mark.slow
def test_relaxed_workloads_run_with_the_backends_option(
    time: FakeTime, store: FiguresStore
) -> None:
    class Relaxing(Timed):
        @property
        def options(self) -> Sequence[BackendOption]:
            return (FAST_MATH,)

        def create_workload_factory(self, *args: Any) -> IWorkloadFactory:
            (resources,) = args
            fast = resources.model_options.get("fast_math_enabled")
            return TimedFactory(time, lambda *_: REFERENCE.scaled(0.25 if fast else 0.5))

    both = registry(time, Relaxing("Fast", time))
    _, report = calibrate(both, store=store, seconds=1000, clock=time.clock)
    assert report.figures is not None
    assert report.figures.relaxed_tensor is not None
    assert report.figures.relaxed_tensor.exec_time == pytest.approx(0.25, rel=1e-3)
    assert report.figures.relaxed_scalar is not None
    assert report.figures.relaxed_scalar.exec_time == pytest.approx(0.25, rel=1e-3)
    assert report.figures.tensors[DataType.FLOAT32].exec_time == pytest.approx(0.5, rel=1e-3)
    assert report.figures.scalars[DataType.FLOAT32].exec_time == pytest.approx(0.5, rel=1e-3)


@pytest.mark.slow
def test_copies_are_measured_where_the_memory_is_the_devices_own(
    time: FakeTime, store: FiguresStore
) -> None:
    _, report = calibrate(registry(time, DeviceBackend()), store=store, seconds=3.0)
    assert report.costs is not None
    assert not report.costs.shares_host_memory
    assert report.costs.copy_in.seconds(1 << 20) > 0
    assert report.costs.copy_out.seconds(1 << 20) > 0


@pytest.mark.slow
def test_each_workload_runs_on_the_reference() -> None:
    runtime = Runtime(RuntimeOptions(["CpuRef"], registry=registry_of(ReferenceBackend())))
    seen = set()
    small = [w for w in reference_workloads() if w.size == 0]
    with runtime:
        for workload in [*small, *scalar_workloads()]:
            network_id = runtime.load_network(workload.graph)
            network = runtime.get_network(network_id)
            (output,) = network.run(random_inputs(workload.graph))
            assert output.size
            runtime.unload_network(network_id)
            seen.add(type(workload.graph.layers[0].operation).__name__)
    assert {"If", "While", "Softmax", "FullyConnected", "Convolution2d", "Reshape"} <= seen
