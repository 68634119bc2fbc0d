"""Facts about devices; figures that a backend makes up are not used."""

from __future__ import annotations

import gc
import itertools
import math
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import (
    DeviceFigures,
    DeviceInfo,
    IBackendInternal,
    IPrograms,
    Numerics,
    OptionValues,
    PerformanceFigures,
    ProgramCheck,
    ProgramFit,
    SavedProgram,
)
from armpy.compiler.devices import FigureSource, device_facts, lookup_performance
from armpy.errors import BackendError, InvalidArgumentError
from armpy.plugins import BackendProxy
from armpy.plugins.proxy.facts import read_facts
from armpy.types import DataType, DeviceType
from armpy_testing.backends.fake_backends import FakeBackend, runtime_of

DECLARED = DeviceFigures({DataType.FLOAT32: PerformanceFigures(0.5, 0.25)})


class Declaring(ReferenceBackend):
    """Declares the figures that a test sets."""

    def __init__(self, figures: object) -> None:
        super().__init__()
        self.figures = figures

    def get_id(self) -> str:
        return "Declaring"

    def get_devices(self) -> Sequence[DeviceInfo]:
        if isinstance(self.figures, Exception):
            raise self.figures
        return (DeviceInfo("", DeviceType.GPU, 28, self.figures),)  # type: ignore[arg-type]  # lies

    @property
    def version(self) -> str:
        return "7.1"

    def get_programs(self) -> IPrograms:
        return Programs()


class Programs(IPrograms):
    """Writes nothing down."""

    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        return None

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        return ProgramCheck(ProgramFit.FOREIGN, "there is none")

    def load(self, saved: SavedProgram) -> object:
        raise AssertionError("nothing fits")


def test_facts_are_what_the_backend_says() -> None:
    facts = device_facts(BackendProxy(Declaring(DECLARED)))
    assert (facts.backend, facts.type, facts.version) == ("Declaring", DeviceType.GPU, "7.1")
    assert (facts.feature_level, facts.extensions) == (28, ())
    assert (facts.num_cache_files, facts.num_data_cache_files) == (1, 1)
    assert facts.figures == DECLARED
    assert facts.figures_source is FigureSource.DECLARED


def test_a_backend_is_asked_once_for_its_figures() -> None:
    """Each answer of this one is another."""
    times = itertools.count(1)

    class Changing(Declaring):
        def get_devices(self) -> Sequence[DeviceInfo]:
            return (DeviceInfo(figures=tensors(float(next(times)))),)

    backend = Changing(None)
    facts = [device_facts(BackendProxy(backend)) for _ in range(3)]
    assert [device.figures for device in facts] == [tensors(1.0)] * 3
    assert next(times) == 2


def test_a_backend_whose_devices_cannot_be_asked_for_is_refused() -> None:
    with pytest.raises(BackendError, match=r"^Declaring / get_devices: .*no device"):
        BackendProxy(Declaring(RuntimeError("no device")))


@pytest.mark.parametrize(
    ("devices", "text"),
    [
        ((), "it has no device.*expected at least one|it has no device"),
        ((DeviceInfo("a"), DeviceInfo("a")), "several devices have one name"),
        (DeviceInfo("a"), "Expected tuple"),
        ((DeviceInfo("a"), "b"), "an entry has the wrong type.*Expected DeviceInfo"),
        ((DeviceInfo(5),), "name of a device has the wrong type"),  # type: ignore[arg-type]
        ((DeviceInfo(device_type=3),), "device_type of a device"),  # type: ignore[arg-type]
        ((DeviceInfo(feature_level=True),), "feature_level of a device"),
        ((DeviceInfo(numerics=None),), "numerics of a device"),  # type: ignore[arg-type]
        ((DeviceInfo(numerics=Numerics(keeps_nan=1)),), "keeps_nan of a device"),  # type: ignore[arg-type]
    ],
)
def test_devices_that_cannot_be_used_are_refused(devices: Any, text: str) -> None:
    class Odd(ReferenceBackend):
        def get_devices(self) -> Any:
            return devices

    with pytest.raises(BackendError, match=rf"^CpuRef / get_devices: .*({text})"):
        BackendProxy(Odd())


class Two(ReferenceBackend):
    """Has two devices; those of runtimes remember which they are for."""

    chosen = ""

    def get_id(self) -> str:
        return "Two"

    def get_devices(self) -> Sequence[DeviceInfo]:
        return DeviceInfo("fast", DeviceType.GPU), DeviceInfo("frugal", DeviceType.ACCELERATOR)

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        backend = Two()
        backend.chosen = str(options["device"])
        return backend

    def get_free_memory(self, device: str) -> int:
        return {"fast": 10, "frugal": 20}[device]


def test_a_device_that_there_is_not_is_refused() -> None:
    text = r"option 'device' cannot have this value.*'fast'.*'frugal'|'fast' or 'frugal'"
    with pytest.raises(InvalidArgumentError, match=text):
        runtime_of(Two(), backend_options={"Two": {"device": "none"}})
    with pytest.raises(InvalidArgumentError, match="has no option 'device'"):
        runtime_of(FakeBackend(), backend_options={"Fake": {"device": "none"}})


class Named(ReferenceBackend):
    """Has a device called like itself."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def get_id(self) -> str:
        return self.name

    def get_devices(self) -> Sequence[DeviceInfo]:
        return (DeviceInfo(self.name),)


def test_a_backend_does_not_live_on_because_its_devices_were_read() -> None:
    def num_kept() -> int:
        gc.collect()
        return sum(type(it) is DeviceInfo and it.name == "Short" for it in gc.get_objects())

    backend = Named("Short")
    gone = weakref.ref(backend)
    read_facts(backend)
    assert num_kept() > 0
    del backend
    assert num_kept() == 0
    assert gone() is None


def test_without_figures_nothing_is_known() -> None:
    facts = device_facts(BackendProxy(Declaring(None)))
    assert facts.figures is None
    assert facts.figures_source is FigureSource.ASSUMED


class Typical(Declaring):
    """States figures of devices of its kind."""

    def __init__(self, figures: DeviceFigures) -> None:
        super().__init__(None)
        self._typical = figures

    def get_typical_figures(self, device: str) -> DeviceFigures:
        return self._typical


def test_typical_figures_are_better_than_none() -> None:
    facts = device_facts(BackendProxy(Typical(DECLARED)))
    assert (facts.figures, facts.figures_source) == (DECLARED, FigureSource.TYPICAL)


def test_typical_figures_that_cannot_be_are_not_used(caplog: pytest.LogCaptureFixture) -> None:
    facts = device_facts(BackendProxy(Typical(tensors(-1.0))))
    assert (facts.figures, facts.figures_source) == (None, FigureSource.ASSUMED)
    assert "exec_time is not a number" in caplog.text


def tensors(exec_time: Any, power_usage: Any = 1.0) -> DeviceFigures:
    return DeviceFigures({DataType.FLOAT32: PerformanceFigures(exec_time, power_usage)})


LIES = {
    "no figures": {"float32": 1.0},
    "not a number": tensors(math.nan),
    "infinite": tensors(math.inf),
    "negative": tensors(-1.0),
    "zero": tensors(0.0),
    "text": tensors("0.5"),
    "true": tensors(True),
    "bad power": tensors(1.0, -2.0),
    "no mapping": DeviceFigures([1, 2]),  # type: ignore[arg-type]
    "wrong key": DeviceFigures({"FLOAT32": PerformanceFigures()}),  # type: ignore[dict-item]
    "no pair": DeviceFigures({DataType.FLOAT32: 0.5}),  # type: ignore[dict-item]
    "bad while": DeviceFigures(while_=PerformanceFigures(math.nan)),
}


@pytest.mark.parametrize("lie", LIES)
def test_figures_of_a_lying_backend_are_refused_by_name_and_not_used(
    caplog: pytest.LogCaptureFixture, lie: str
) -> None:
    backend = BackendProxy(Declaring(LIES[lie]))
    facts = device_facts(backend)
    assert facts.figures is None
    assert "Declaring" in caplog.text
    assert "get_devices" in caplog.text


def test_errors_of_a_mapping_do_not_cross_the_boundary() -> None:
    class Broken(dict[DataType, PerformanceFigures]):
        def items(self) -> Any:
            raise KeyError("broken")

    backend = BackendProxy(Declaring(DeviceFigures(Broken())))
    assert device_facts(backend).figures is None


def test_look_up_goes_by_type_relaxation_and_scalar() -> None:
    figures = DeviceFigures(
        {DataType.FLOAT32: PerformanceFigures(1.0), DataType.SIGNED32: PerformanceFigures(2.0)},
        {DataType.FLOAT32: PerformanceFigures(3.0)},
        {"com.acme.T": PerformanceFigures(4.0)},
        relaxed_tensor=PerformanceFigures(5.0),
    )

    def time(*args: Any, **options: Any) -> float:
        return lookup_performance(figures, *args, **options).exec_time

    assert time(DataType.FLOAT32) == 1.0
    assert time(DataType.SIGNED32) == 2.0
    assert time(DataType.FLOAT32, is_scalar=True) == 3.0
    assert time("com.acme.T") == 4.0
    assert time(DataType.FLOAT32, is_relaxed=True) == 5.0
    assert time(DataType.FLOAT32, is_relaxed=True, is_scalar=True) == 3.0
    assert time(DataType.SIGNED32, is_relaxed=True) == 2.0
    largest = float(np.finfo(np.float32).max)
    assert time(DataType.BOOLEAN) == time("com.acme.U") == largest
    assert lookup_performance(None, DataType.FLOAT32).power_usage == largest


def test_the_reference_is_what_others_are_set_against() -> None:
    facts = device_facts(BackendProxy(ReferenceBackend()))
    assert facts.figures is not None
    assert {*facts.figures.tensors} == {*facts.figures.scalars} == {*DataType}
    assert {*facts.figures.tensors.values(), facts.figures.if_} == {PerformanceFigures(1.0, 1.0)}
