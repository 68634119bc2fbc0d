"""`armpy.check` says of a compiled model what loading it then does, with the reason.

Each case is a file, and what is installed. It is checked, and then loaded: a file that fits has all
of its programs used, one that fits slower is loaded without some, and one that does not fit is
refused.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

import armpy
from armpy import CompilationCaching, FileFit, Model, Network, Runtime, RuntimeOptions
from armpy.backend import IBackendInternal, ProgramCheck, ProgramFit, ReasonCode, Support
from armpy.errors import ArmpyError, BackendError, DeviceNotFoundError
from armpy.ops import FullyConnected
from armpy.plugins import BackendRegistry
from armpy.store.archive.container import write_container
from armpy_testing.backends.fake_backends import registry_of
from armpy_testing.backends.scripted_backend import (
    Call,
    Script,
    ScriptedBackend,
    answers,
    declaration,
    raises,
)
from armpy_testing.models.networks import ADD, RELU, chain, f32
from armpy_testing.systems import NEEDS_OWNERS
from tests.support.prepared_layouts import read_plainly

files = pytest.importorskip("armpy_numba_acc.files", reason="Numba is not installed")
pytest.importorskip("numba", reason="Numba is not installed")

Manifest: TypeAlias = dict[str, Any]
Change: TypeAlias = Callable[[Manifest], object]
MODEL = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"


def two_kinds() -> Model:
    """A dense layer on NumbaAcc, and after it one on CpuRef."""
    net = Network("two kinds")
    weights = net.constant(np.ones((3, 4), np.float32))
    dense = net.add(FullyConnected(), net.input("x", f32(2, 4)), weights, name="dense")
    net.output("y", net.add(RELU, dense, name="relu"))
    affinity = {"relu": "CpuRef"}
    return Model(net.build(), Runtime(RuntimeOptions(affinity=affinity)))


def several_shapes() -> Model:
    net = Network("several shapes")
    net.output("y", net.add(ADD, net.input("x", f32(None, 3)), net.input("more", f32(None, 3))))
    model = Model(net.build())
    for rows in (2, 5):
        model.prepare({"x": (rows, 3), "more": (rows, 3)})
    return model


def fast(backends: Sequence[str] | None = None) -> Model:
    options = {"NumbaAcc": {"fast_math_enabled": True}}
    return Model(chain(), Runtime(RuntimeOptions(backends, backend_options=options)))


MODELS: Mapping[str, Callable[[], Model]] = {
    "digits": lambda: armpy.load(MODEL),
    "two kinds": two_kinds,
    "several shapes": several_shapes,
    "CpuRef": lambda: armpy.load(MODEL, backends=["CpuRef"]),
    "fast": fast,
    "fast on NumbaAcc": lambda: fast(["NumbaAcc", "CpuRef"]),
}
TARGETS = {"two targets": ("cortex-a72", "host"), "Arm": ("cortex-a72", "neoverse-n1")}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file of a model, by the model's name."""
    folder = tmp_path_factory.mktemp("saved")

    @cache
    def make(name: str) -> Path:
        with MODELS["digits" if name in TARGETS else name]() as model:
            model.save(folder / f"{name}.armpy", targets=TARGETS.get(name, ()))
        return folder / f"{name}.armpy"

    return make


def changed(source: Path, target: Path, change: Change) -> Path:
    """Write a file whose manifest is changed."""
    file = read_plainly(source.read_bytes())
    manifest = {name: value for name, value in file.manifest.items() if name != "sections"}
    change(manifest)
    write_container(target, manifest, file.sections)
    return target


def in_programs(**values: object) -> Change:
    """Change the records of all programs."""

    def change(manifest: Manifest) -> None:
        for record in manifest["programs"]:
            record.update(values)

    return change


def in_descriptions(**values: object) -> Change:
    """Change what the backend says of all its programs."""

    def change(manifest: Manifest) -> None:
        for record in manifest["programs"]:
            record["about"].update(values)

    return change


def fit_as_loaded(path: Path, load: Callable[[Path], Model]) -> FileFit:
    """What loading a file comes to, as the loaded model says."""
    try:
        model = load(path)
    except ArmpyError:
        return FileFit.UNFIT
    manifest = read_plainly(path.read_bytes()).manifest
    of_file = {record["backend"] for record in manifest["programs"]} | manifest["kept"].keys()
    with model:
        is_whole = not manifest["left_out"]
        for rows in (2, 5) if None in (model.inputs[0].shape or ()) else ():
            model.prepare({"x": (rows, 3), "more": (rows, 3)})
            is_whole &= _has_all(model, of_file)
        return FileFit.FITS if is_whole and _has_all(model, of_file) else FileFit.SLOWER


def _has_all(model: Model, of_file: Collection[str]) -> bool:
    """Whether all that runs comes from the file, and nothing that the file has is missing."""
    placement = model.placement
    assert placement is not None
    if model.is_light:
        return True
    uses = [use for use in placement.cache_uses if "from the compiled model" in use.reason]
    in_file = {use.backend_id for use in uses if use.is_hit}
    backends = {layer.backend for layer in placement.layers}
    return backends == of_file and all(use.is_hit for use in uses) and in_file >= COMPILE & backends


COMPILE = frozenset({"NumbaAcc", "Npu"})
"""Backends of these tests that compile."""


def same(_: Manifest) -> None:
    """Change nothing."""


def with_vendor_layers(manifest: Manifest) -> None:
    manifest["kept"] = {"Vendor": manifest["kept"].pop("CpuRef")}


FILES: Mapping[str, tuple[str, Change, FileFit, str]] = {
    "as compiled": ("digits", same, FileFit.FITS, "10 layers of NumbaAcc for host"),
    "two backends": (
        "two kinds",
        same,
        FileFit.FITS,
        "1 layer of NumbaAcc for host; 1 layer of CpuRef, not compiled",
    ),
    "several shapes": ("several shapes", same, FileFit.FITS, "1 layer of NumbaAcc for host"),
    "nothing compiled": ("CpuRef", same, FileFit.FITS, "10 layers of CpuRef, not compiled"),
    "an option": ("fast", same, FileFit.FITS, "3 layers of NumbaAcc for host"),
    "an option and backends": (
        "fast on NumbaAcc",
        same,
        FileFit.FITS,
        "3 layers of NumbaAcc for host",
    ),
    "the second target": ("two targets", same, FileFit.FITS, "10 layers of NumbaAcc for host"),
    "other processors": (
        "Arm",
        same,
        FileFit.SLOWER,
        "10 layers of NumbaAcc: for cortex-a72: it is for aarch64, and this is x86_64, "
        "for neoverse-n1: it is for aarch64, and this is x86_64",
    ),
    "a missing feature": (
        "digits",
        in_descriptions(needs=["avx9"]),
        FileFit.SLOWER,
        "10 layers of NumbaAcc: for host: this processor lacks avx9",
    ),
    "another version": (
        "digits",
        in_descriptions(abi="0", version="9.9"),
        FileFit.SLOWER,
        "it was made by NumbaAcc 9.9, whose programs are laid out otherwise",
    ),
    "a strange description": (
        "digits",
        in_programs(about=3),
        FileFit.UNFIT,
        "a program cannot be read",
    ),
    "a backend that is not installed": (
        "digits",
        in_programs(backend="OrtCpu"),
        FileFit.SLOWER,
        "10 layers of OrtCpu: for host: there is no backend 'OrtCpu'",
    ),
    "layers of one that is not installed": (
        "two kinds",
        with_vendor_layers,
        FileFit.SLOWER,
        "1 layer of Vendor: there is no backend 'Vendor'",
    ),
    "no networks": (
        "digits",
        lambda manifest: manifest.update(signatures=[]),
        FileFit.UNFIT,
        "it has no networks",
    ),
    "a network": (
        "digits",
        lambda manifest: manifest.update(kind="network"),
        FileFit.UNFIT,
        "the compiled model holds no model. Expected what armpy compile or Model.save has written",
    ),
}
DEVICES = ("NumbaAcc", "CpuRef", "Nowhere")


@pytest.mark.parametrize("name", FILES)
def test_the_answer_is_what_loading_does(
    name: str, saved: Callable[[str], Path], tmp_path: Path
) -> None:
    source, change, expected, reason = FILES[name]
    if "x86_64" in reason and platform.machine() != "x86_64":
        pytest.skip("it is for other processors than this one")
    path = changed(saved(source), tmp_path / "model.armpy", change)
    answer = armpy.check(path)
    assert answer.fit is expected, answer.reason
    assert reason in answer.reason
    assert fit_as_loaded(path, armpy.load) is expected


@pytest.mark.sampled(4)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", FILES)
def test_the_answer_for_a_device_is_what_loading_for_it_does(
    name: str, device: str, saved: Callable[[str], Path], tmp_path: Path
) -> None:
    source, change, _, _ = FILES[name]
    path = changed(saved(source), tmp_path / "model.armpy", change)
    backends = list(dict.fromkeys([device, "CpuRef"]))
    answer = armpy.check(path, device=device)
    assert answer.fit is fit_as_loaded(path, partial(armpy.load, backends=backends)), answer.reason


@pytest.mark.parametrize(
    ("damaged", "options", "reason"),
    [
        (lambda data: data[:300], {}, "it is not whole"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), {}, "the checksum of section"),
        (lambda data: data[:8] + b"\5" + data[9:], {}, "Expected version 4; got version 5"),
        (lambda data: data, {"code": "signed"}, "it is not signed"),
    ],
    ids=["cut", "a wrong byte", "a newer version", "not signed"],
)
def test_a_file_that_is_refused_does_not_fit(
    damaged: Callable[[bytes], bytes],
    options: Mapping[str, str],
    reason: str,
    saved: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    path = tmp_path / "model.armpy"
    path.write_bytes(damaged(saved("digits").read_bytes()))
    answer = armpy.check(path, code=options.get("code"))
    assert (answer.fit, answer.programs) == (FileFit.UNFIT, ())
    assert reason in answer.reason
    assert answer.fix
    with pytest.raises(armpy.ParserError):
        armpy.load(path, code=options.get("code"))


@NEEDS_OWNERS
def test_a_file_that_others_can_change_does_not_fit(
    saved: Callable[[str], Path], tmp_path: Path
) -> None:
    path = changed(saved("digits"), tmp_path / "model.armpy", same)
    path.chmod(0o666)
    assert "can be written by everybody" in armpy.check(path).reason
    assert armpy.check(path).fit is fit_as_loaded(path, armpy.load) is FileFit.UNFIT
    answer = armpy.check(path, code="never")
    assert answer.fit is fit_as_loaded(path, partial(armpy.load, code="never")) is FileFit.SLOWER
    assert (
        answer.reason
        == "10 layers of NumbaAcc: for host: code is not wanted: the option code is 'never'"
    )


def fail(*_: object) -> Any:  # Any: in the place of any method
    raise RuntimeError("out of order")


def test_nothing_is_loaded_or_compiled(
    saved: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = changed(saved("digits"), tmp_path / "model.armpy", in_descriptions(needs=["avx9"]))
    for method in ("load", "create_workload", "save"):
        monkeypatch.setattr(files.NumbaPrograms, method, fail)
    monkeypatch.setattr(Runtime, "__init__", fail)
    monkeypatch.setattr("armpy_numba_acc.backend.NumbaBackend.optimize_subgraph_view", fail)
    assert armpy.check(saved("digits")).fit is FileFit.FITS
    for device in (None, "NumbaAcc", "CpuRef"):
        assert armpy.check(path, device=device).fit is FileFit.SLOWER


# A vendor's backend, and registries


def registry_with(script: Script, *others: IBackendInternal) -> BackendRegistry:
    npu = ScriptedBackend("Npu", script, declared=declaration(keeps_programs=True))
    return registry_of(npu, *others)


def load_on(registry: BackendRegistry, backends: Sequence[str] | None, path: Path) -> Model:
    return armpy.load(path, runtime=Runtime(RuntimeOptions(backends=backends, registry=registry)))


@pytest.fixture(scope="module")
def of_vendor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vendor") / "chain.armpy"
    registry = registry_with({}, ReferenceBackend())
    # Other tests compile the same layers for a backend of this id otherwise.
    options = RuntimeOptions(registry=registry, caching=CompilationCaching(enabled=False))
    with Model(chain(), Runtime(options)) as model:
        model.save(path)
    return path


def as_described(call: Call) -> ProgramCheck:
    """Answer what the program's description says."""
    fit = ProgramFit(call.arguments["about"].get("fit", "accepted"))
    return ProgramCheck(fit, "" if fit is ProgramFit.ACCEPTED else "the driver is version 2")


def for_drivers(*fits: str) -> Change:
    """Give the only part a program for each of several drivers."""

    def change(manifest: Manifest) -> None:
        (record,) = manifest["programs"]
        manifest["programs"] = [
            {**record, "target": f"driver {number}", "about": {**record["about"], "fit": fit}}
            for number, fit in enumerate(fits)
        ]

    return change


GONE = DeviceNotFoundError("no device answers", where="Npu")
VENDORS: Mapping[str, tuple[Script, Change, FileFit, FileFit, str]] = {
    "the driver": ({}, same, FileFit.FITS, FileFit.FITS, "3 layers of Npu for host"),
    "another driver": (
        {},
        for_drivers("needs rebuild", "foreign"),
        FileFit.SLOWER,
        FileFit.SLOWER,
        "3 layers of Npu: for driver 0: the driver is version 2, for driver 1: the driver is "
        "version 2",
    ),
    "several drivers": (
        {},
        for_drivers("foreign", "accepted", "accepted"),
        FileFit.FITS,
        FileFit.FITS,
        "3 layers of Npu for driver 1",
    ),
    "no device": (
        {"open": raises(GONE)},
        for_drivers("foreign"),
        FileFit.SLOWER,
        FileFit.UNFIT,
        "no device answers",
    ),
    "a fault": (
        {"check": raises(BackendError("the driver hangs"))},
        same,
        FileFit.SLOWER,
        FileFit.SLOWER,
        "the driver hangs",
    ),
}


@pytest.mark.parametrize("device", [None, "Npu"])
@pytest.mark.parametrize("name", VENDORS)
def test_the_answer_is_what_loading_on_a_vendors_device_does(
    name: str, device: str | None, of_vendor: Path, tmp_path: Path
) -> None:
    script, change, *fits, reason = VENDORS[name]
    path = changed(of_vendor, tmp_path / "model.armpy", change)
    registry = registry_with({"check": as_described, **script}, ReferenceBackend())
    answer = armpy.check(path, device=device, registry=registry)
    assert answer.fit is fits[device is not None], answer.reason
    if device is not None or name != "no device":
        assert reason in answer.reason
    backends = None if device is None else [device, "CpuRef"]
    assert fit_as_loaded(path, partial(load_on, registry, backends)) is answer.fit


@pytest.mark.parametrize("is_installed", [False, True])
def test_layers_that_no_backend_here_takes_do_not_fit(is_installed: bool, of_vendor: Path) -> None:
    refuses = answers(Support.no(ReasonCode.DEVICE, "it is busy"))
    registry = registry_of(ScriptedBackend("Other", {"support": refuses}))
    if is_installed:
        registry = registry_with({"check": raises(GONE), "support": refuses})
    answer = armpy.check(of_vendor, registry=registry)
    assert answer.fit is fit_as_loaded(of_vendor, partial(load_on, registry, None)) is FileFit.UNFIT
    name = "Npu" if is_installed else "Other"
    assert re.match(f"no backend here takes .*'add_0' \\({name}: it is busy\\)", answer.reason)
