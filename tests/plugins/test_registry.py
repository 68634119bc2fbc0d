"""The registry of backends: versions, ids, errors that name the plugin."""

from __future__ import annotations

import logging
import sys
import threading
import time
import tomllib
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

import armpy
from armpy.errors import BackendError, BackendUnavailableError, InvalidArgumentError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph.network import Network
from armpy.model import Model
from armpy.plugins import BackendRegistry, Candidate, CandidateStatus, preferred_backends
from armpy.plugins.checks import why_incompatible
from armpy.plugins.proxy.guarded_call import call_backend
from armpy.types import REFERENCE_BACKEND_ID
from armpy_testing.backends.dynamic_modules import module_source, private_modules, write_module
from armpy_testing.backends.fake_backends import FakeBackend, registry_of
from armpy_testing.backends.fake_distributions import FakeSite, fake_site
from armpy_testing.models.networks import ADD, f32, floats


@pytest.fixture
def site(tmp_path: Path) -> Iterator[FakeSite]:
    with fake_site(tmp_path) as fake:
        yield fake


def candidate(registry: BackendRegistry, backend_id: str) -> Candidate:
    """The first candidate of an id."""
    return next(c for c in registry.candidates if c.backend_id == backend_id)


def test_an_installed_distributions_backend_is_found_and_loaded(site: FakeSite) -> None:
    site.install_backend("Npu", version="2.3")
    registry = BackendRegistry.discover()
    npu = candidate(registry, "Npu")
    assert (npu.source, npu.status) == ("npu-backend 2.3", CandidateStatus.FOUND)
    assert registry.get("Npu").get_id() == "Npu"
    assert npu.status is CandidateStatus.REGISTERED
    assert registry.get("Npu") is registry.get("Npu")


def test_listing_imports_no_backend(site: FakeSite) -> None:
    module = site.install_backend("Npu")
    registry = BackendRegistry.discover()
    assert "Npu" in registry.backend_ids
    assert module not in sys.modules
    registry.get("Npu")
    assert module in sys.modules


def test_the_reference_backend_is_a_project_like_a_third_partys() -> None:
    """It is found by the entry point that its project states, and by nothing else."""
    home = Path(__file__).parents[2] / "backends" / "reference"
    project = tomllib.loads((home / "pyproject.toml").read_text("utf-8"))["project"]
    (reference,) = project["entry-points"]["armpy.backends"].values()
    by_name = {point.name: point for point in entry_points(group="armpy.backends")}
    assert by_name[REFERENCE_BACKEND_ID].value == reference
    registry = BackendRegistry.discover()
    assert candidate(registry, REFERENCE_BACKEND_ID).name == reference
    assert type(registry.get(REFERENCE_BACKEND_ID)) is by_name[REFERENCE_BACKEND_ID].load()


def test_of_two_backends_of_one_id_the_first_distribution_by_name_wins(site: FakeSite) -> None:
    site.install_backend("Npu", name="b-vendor")
    site.install_backend("Npu", name="a-vendor")
    registry = BackendRegistry.discover()
    first, second = (c for c in registry.candidates if c.backend_id == "Npu")
    assert (first.source, first.status) == ("a-vendor 1.0", CandidateStatus.FOUND)
    assert (second.source, second.status) == ("b-vendor 1.0", CandidateStatus.DUPLICATE)
    assert second.reason == "another backend has the id 'Npu': a-vendor 1.0"
    assert type(registry.get("Npu")).__module__ == "a_vendor"


@pytest.mark.parametrize("asks_for_all", [False, True])
@pytest.mark.parametrize("is_installed", [False, True])
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("def get_api_version(self): return '9.0'", "made for API version 9.0"),
        ("def get_api_version(self): return '2.99'", "made for API version 2.99"),
        ("raise OSError('no driver')", "OSError: no driver"),
    ],
)
def test_a_backend_that_cannot_be_used_leaves_its_id_to_the_next(
    site: FakeSite, tmp_path: Path, fault: str, reason: str, is_installed: bool, asks_for_all: bool
) -> None:
    site.install_backend("Npu", fault, name="a-vendor")
    if is_installed:
        site.install_backend("Npu", name="b-vendor")
    else:
        write_module(tmp_path / "modules", "Acme_Npu_backend", module_source("Npu"))
    registry = armpy.backend_registry(dynamic_backends_path=tmp_path / "modules")
    if asks_for_all:
        registry.available()
    assert registry.get("Npu").get_id() == "Npu"
    first, second = (c for c in registry.candidates if c.backend_id == "Npu")
    assert reason in first.reason
    assert (second.status, second.reason) == (CandidateStatus.REGISTERED, "")


@pytest.mark.parametrize(
    ("backend_id", "module"), [("CpuRef", "armpy_reference"), ("NumbaAcc", "armpy_numba_acc")]
)
def test_no_other_distribution_takes_an_id_of_armpys_own(
    site: FakeSite, backend_id: str, module: str
) -> None:
    site.install("Aaa", {backend_id: "no_such_module:Backend"})
    registry = BackendRegistry.discover()
    first, second = (c for c in registry.candidates if c.backend_id == backend_id)
    assert (first.distribution, first.status) == ("armpy", CandidateStatus.FOUND)
    assert (second.distribution, second.status) == ("Aaa", CandidateStatus.DUPLICATE)
    assert type(registry.get(backend_id)).__module__ == f"{module}.backend"


@pytest.mark.parametrize("backend_id", ["", "Unknown", "host"])
def test_an_invalid_id_is_rejected(site: FakeSite, backend_id: str) -> None:
    site.install("odd-vendor", {backend_id: "odd_vendor:Backend"})
    registry = BackendRegistry.discover()
    rejected = candidate(registry, backend_id)
    assert rejected.status is CandidateStatus.REJECTED
    assert rejected.reason == f"'{backend_id}' is not a valid backend id"
    assert backend_id not in registry.backend_ids
    with pytest.raises(BackendUnavailableError, match="is not a valid backend id"):
        registry.get(backend_id)
    with pytest.raises(InvalidArgumentError, match="is not a valid backend id"):
        registry_of().register(backend_id, FakeBackend)


BROKEN = {
    "import error": ("import no_such_module", "Backend", "ModuleNotFoundError"),
    "syntax error": ("def (", "Backend", "SyntaxError"),
    "exit while imported": ("raise SystemExit(3)", "Backend", "SystemExit: 3"),
    "missing class": ("", "Backend", "AttributeError"),
    "no reference": ("", "not a reference!", "AttributeError|ValueError|TypeError"),
    "factory raises": ("def Backend(): raise OSError('no device')", "Backend", "no device"),
    "an armpy error": (
        "from armpy.errors import BackendUnavailableError\n"
        "def Backend(): raise BackendUnavailableError('no device', where='npu')",
        "Backend",
        "npu: no device",
    ),
    "factory needs arguments": ("def Backend(x): pass", "Backend", "TypeError"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_backend_that_cannot_be_loaded_has_failed_and_stops_no_other(
    site: FakeSite, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    source, attribute, reason = BROKEN[name]
    site.install("bad-vendor", {"Bad": f"bad_vendor:{attribute}"}, source=source)
    site.install_backend("Good")
    registry = BackendRegistry.discover()
    ids = [backend.get_id() for backend in registry.available()]
    assert "Good" in ids
    assert "Bad" not in ids
    failed = candidate(registry, "Bad")
    assert failed.status is CandidateStatus.FAILED
    assert "Traceback" in failed.traceback
    text = f"backend 'Bad' from bad-vendor 1.0 cannot be used: .*{reason}"
    for _ in range(2):
        with pytest.raises(BackendUnavailableError, match=text):
            registry.get("Bad")
    warnings = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert [w.message.split(":")[0] for w in warnings] == [
        "backend 'Bad' from bad-vendor 1.0 is left out"
    ]


@pytest.mark.parametrize("member", ["get_devices", "get_id"])
def test_a_backend_that_cannot_be_asked_what_it_is_has_failed(site: FakeSite, member: str) -> None:
    source = f"""
    from armpy_testing.backends.fake_backends import FakeBackend

    class Backend(FakeBackend):
        def {member}(self):
            raise OSError("no driver")
    """
    site.install("bad-vendor", {"Fake": "bad_vendor:Backend"}, source=source)
    registry = BackendRegistry.discover()
    assert "Fake" not in [backend.get_id() for backend in registry.available()]
    assert "no driver" in candidate(registry, "Fake").reason
    with pytest.raises(BackendUnavailableError, match="no driver"):
        registry.get("Fake")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("metadata", ["", "Metadata-Version: 2.1\n", "Name: only-a-name\n"])
def test_a_distribution_with_damaged_metadata_stops_no_other(site: FakeSite, metadata: str) -> None:
    site.install_backend("Odd", metadata=metadata)
    site.install_backend("Good")
    registry = BackendRegistry.discover()
    assert registry.get("Good").get_id() == "Good"
    assert registry.get("Odd").get_id() == "Odd"


def test_a_distribution_whose_metadata_cannot_be_read_stops_no_other(site: FakeSite) -> None:
    module = site.install_backend("Odd")
    (site.path / f"{module}-1.0.dist-info" / "METADATA").write_bytes(b"Name: \xff\xfe")
    registry = BackendRegistry.discover()
    assert candidate(registry, "Odd").source == f"{module}:Backend"
    assert registry.get("Odd").get_id() == "Odd"


def test_a_backend_registered_by_hand_twice_is_an_error() -> None:
    registry = registry_of(FakeBackend())
    with pytest.raises(InvalidArgumentError, match=r"'Fake' cannot be .*has the id 'Fake'"):
        registry.register("Fake", FakeBackend)
    assert len(registry.candidates) == 1


def test_names_give_the_order_and_count_once() -> None:
    registry = registry_of(FakeBackend("A"), FakeBackend("a"), ReferenceBackend())
    chosen = preferred_backends(registry, ["a", "CpuRef", "a"])
    assert [backend.get_id() for backend in chosen] == ["a", "CpuRef"]


def test_threads_that_ask_at_once_get_one_backend() -> None:
    registry, start, made = BackendRegistry(), threading.Barrier(4), []

    def make() -> FakeBackend:
        time.sleep(0.01)
        made.append(FakeBackend())
        return made[-1]

    def ask(_: int) -> object:
        start.wait(30)
        return registry.get("Fake")

    registry.register("Fake", make)
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(ask, range(4))] == made * 4


def test_an_empty_list_of_names_is_an_error() -> None:
    with pytest.raises(InvalidArgumentError, match=r"list of backends is empty. Expected .* Fake"):
        preferred_backends(registry_of(FakeBackend()), [])


def test_the_environment_names_backends_in_order(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.install_backend("Npu")
    monkeypatch.setenv("ARMPY_BACKENDS", " CpuRef , Npu,,")
    assert Runtime().get_device_spec().supported_backends == ("CpuRef", "Npu")


def test_options_come_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMPY_BACKENDS", "Missing")
    options = RuntimeOptions(["CpuRef"])
    assert Runtime(options).get_device_spec().supported_backends == ("CpuRef",)
    with pytest.raises(BackendUnavailableError, match="no backend 'Missing'"):
        Runtime()


# Registries that applications hold


class Own(ReferenceBackend):
    """A backend that an application brings along."""

    def get_id(self) -> str:
        return "Own"


def model(runtime: Runtime) -> Model:
    net = Network("sum")
    net.output("y", net.add(ADD, net.input("a", f32(2)), net.input("b", f32(2))))
    return Model(net, runtime)


def test_it_has_the_installed_backends_and_those_of_directories(tmp_path: Path) -> None:
    write_module(tmp_path, "Acme_Npu_backend", module_source("Npu"))
    registry = armpy.backend_registry(dynamic_backends_path=tmp_path)
    assert isinstance(registry, armpy.BackendRegistry)
    assert registry.is_registered("CpuRef")
    assert registry.get("Npu").get_id() == "Npu"
    assert {"CpuRef", "Npu", "NumbaAcc"} <= set(registry.backend_ids)
    registry.close()
    assert private_modules() == set()


def test_each_is_one_of_its_own() -> None:
    first, second = armpy.backend_registry(), armpy.backend_registry()
    first.deregister("CpuRef")
    first.register("Own", Own)
    assert first.is_registered("Own")
    assert not first.is_registered("CpuRef")
    assert not second.is_registered("Own")
    assert second.is_registered("CpuRef")


def test_a_backend_needs_only_a_function_that_makes_it() -> None:
    backends = []

    def factory() -> Own:
        backends.append(Own())
        return backends[-1]

    registry = armpy.backend_registry()
    registry.register("Own", factory)
    assert not backends
    assert registry.get("Own") is backends[0]
    with pytest.raises(InvalidArgumentError, match=r"cannot be called.*class, not an object"):
        registry.register("Another", Own())  # type: ignore[arg-type]  # as people do
    with pytest.raises(InvalidArgumentError, match="'Own' cannot be registered"):
        registry.register("Own", factory)


@pytest.mark.parametrize("backend_id", [3, None, b"Acme", ("Acme",), ["Acme"]])
def test_an_id_that_is_not_text_is_refused_everywhere(
    backend_id: Any,  # as people do
) -> None:
    registry = armpy.backend_registry()
    for use in (
        lambda: registry.register(backend_id, Own),
        lambda: registry.deregister(backend_id),
        lambda: registry.is_registered(backend_id),
        lambda: registry.get(backend_id),
        lambda: registry.create(backend_id),
    ):
        with pytest.raises(InvalidArgumentError, match=r"id of a backend is not text.*a str.*got"):
            use()
    assert "CpuRef" in registry.backend_ids
    with Runtime(RuntimeOptions(registry=registry)) as runtime:
        assert runtime.backends


def test_a_registry_knows_the_backends_of_directories_before_they_are_used(tmp_path: Path) -> None:
    write_module(tmp_path, "Acme_Npu_backend", module_source("Npu"))
    registry = armpy.backend_registry(dynamic_backends_path=tmp_path)
    assert registry.is_registered("CpuRef")
    assert private_modules() == set()  # no module is imported for an id that is known
    assert not registry.is_registered("npu")
    assert registry.is_registered("Npu")
    registry.close()
    assert not registry.is_registered("Npu")
    assert private_modules() == set()


def test_a_backend_of_a_directory_is_deregistered_before_it_is_imported(tmp_path: Path) -> None:
    write_module(tmp_path, "Acme_Npu_backend", module_source("Npu"))
    registry = armpy.backend_registry(dynamic_backends_path=tmp_path)
    registry.deregister("Npu")
    assert private_modules() == set()
    with Runtime(RuntimeOptions(registry=registry)) as runtime:
        assert "Npu" not in [backend.get_id() for backend in runtime.backends]
    assert not registry.is_registered("Npu")
    with pytest.raises(BackendUnavailableError, match=r"'Npu'.* cannot be used: it was d"):
        registry.get("Npu")
    registry.register("Npu", lambda: FakeBackend("Npu"))
    assert registry.get("Npu").get_id() == "Npu"


def test_an_override_is_one_path_that_no_colon_divides(tmp_path: Path) -> None:
    for vendor, backend_id in (("one", "One"), ("two", "Two")):
        write_module(tmp_path / vendor, "Acme_Npu_backend", module_source(backend_id))
    path = f"{tmp_path / 'one'}:{tmp_path / 'two'}"
    registry = armpy.backend_registry(dynamic_backends_path=path)
    assert [skipped.path for skipped in registry.skipped_paths] == [path]
    assert not registry.is_registered("One")
    places = [str(tmp_path / "one"), str(tmp_path / "two")]
    both = armpy.backend_registry(dynamic_backends_path=places)
    assert both.is_registered("One")
    assert both.is_registered("Two")  # equally named files of two directories are both loaded


def test_a_duplicate_of_another_directory_leaves_no_module(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_module(tmp_path / name, "Acme_Npu_backend", module_source("Npu"))
    paths = [tmp_path / "one", tmp_path / "two"]
    registry = armpy.backend_registry(dynamic_backends_path=paths)
    registry.available()
    statuses = [c.status for c in registry.candidates if c.path]
    assert statuses == [CandidateStatus.REGISTERED, CandidateStatus.DUPLICATE]
    assert len([name for name in private_modules() if "." in name]) == 1


def test_a_linked_directory_counts_once_with_its_target(tmp_path: Path) -> None:
    write_module(tmp_path / "target", "Acme_Npu_backend", module_source("Npu"))
    (tmp_path / "link").symlink_to(tmp_path / "target", target_is_directory=True)
    paths = [tmp_path / "link", tmp_path / "target"]
    registry = armpy.backend_registry(dynamic_backends_path=paths)
    assert len([c for c in registry.candidates if c.path]) == 1
    assert registry.is_registered("Npu")


def test_runtimes_share_it_and_leave_it_open() -> None:
    registry = armpy.backend_registry()
    registry.register("Own", Own)
    options = RuntimeOptions(registry=registry, backends=["Own"])
    with Runtime(options) as first, Runtime(options) as second:
        for runtime in (first, second):
            assert runtime.registry is registry
            np.testing.assert_array_equal(model(runtime)(floats(1, 2), floats(3, 4)), floats(4, 6))
    assert registry.get("Own").get_id() == "Own"


def test_a_runtime_keeps_a_backend_that_is_deregistered() -> None:
    registry = armpy.backend_registry()
    registry.register("Own", Own)
    runtime = Runtime(RuntimeOptions(registry=registry, backends=["Own"]))
    registry.deregister("Own")
    registry.deregister("Own")  # once is enough
    np.testing.assert_array_equal(model(runtime)(floats(1, 2), floats(3, 4)), floats(4, 6))
    with pytest.raises(BackendUnavailableError, match="'Own' cannot be used"):
        Runtime(RuntimeOptions(registry=registry, backends=["Own"]))


def test_options_that_cannot_be_used_are_an_error() -> None:
    with pytest.raises(InvalidArgumentError, match="probe_timeout_s"):
        armpy.backend_registry(probe_timeout_s=0)


@pytest.mark.parametrize(
    ("version", "core", "fits"),
    [
        ("0.1", "0.1", True),
        ("0.0", "0.1", True),
        ("0.2", "0.1", False),
        ("1.0", "0.1", False),
        ("0.9", "1.2", False),
        ("1.0", "1.2", True),
        ("1.2", "1.2", True),
        ("1.3", "1.2", False),
        ("1.10", "1.9", False),
        ("2.0", "1.2", False),
        ("2.9", "2.9", True),
        ("2.3", "2.9", True),
        ("2.1", "2.9", True),
        ("2.10", "2.9", False),
        ("1.4", "2.9", False),
        ("3.4", "2.9", False),
        ("2.0", "1.0", False),
        ("2.0", "3.0", False),
    ],
)
def test_the_major_has_to_be_equal_and_the_minor_at_most_the_cores(
    version: str, core: str, fits: bool
) -> None:
    reason = why_incompatible(version, core)
    expected = "" if fits else f"it is made for API version {version}, which does not fit {core}"
    assert reason == expected


@pytest.mark.parametrize(
    "version",
    [
        *("", "new", "1.0.", "1,0", "1", "v1.0", " 1.0 ", "1.0\n", "1.0.0", "0.1.7", "1.0rc1"),
        *("1.0+local", "1!1.0", "1.0.post1", "01.0", "1.00", "-1.0", "+1.0", "1_0.0", "\u0661.0"),
        *(None, 0.1, (1,), (1, 0, 0), ("1", "0"), (True, 0), (-1, 0)),
    ],
)
def test_something_that_is_no_version_does_not_fit(version: object) -> None:
    reason = why_incompatible(version)
    assert reason == f"its API version {version!r} is not of the form major.minor"


# Backends' own errors at the plugin boundary


def test_an_error_that_is_raised_again_and_again_keeps_the_traceback_of_the_last_time() -> None:
    busy = BackendError("busy", where="queue")

    def fails() -> None:
        raise busy

    lengths = set()
    for _ in range(5):
        with pytest.raises(BackendError, match=r"^A / fails / queue: busy\.$") as caught:
            call_backend("A", fails)
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert frames[-1].name == "fails"
        lengths.add(len(frames))
    assert len(lengths) == 1
    assert (busy.__traceback__, busy.where) == (None, "queue")
