from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from armpy.backend import BACKEND_API_VERSION, IBackendInternal, cache_directory
from armpy.core.processes.worker import KEPT_BYTES
from armpy.errors import BackendUnavailableError
from armpy.execution import Runtime, RuntimeOptions
from armpy.plugins import (
    BackendRegistry,
    Candidate,
    CandidateKind,
    CandidateStatus,
    PluginOptions,
    ProbeOutcome,
    ProbeResult,
    probe_candidates,
)
from armpy.plugins.probe import fingerprint, result_from
from armpy.plugins.probe_worker import load_and_describe
from armpy_testing.backends.dynamic_modules import (
    forget_private_modules,
    module_source,
    private_modules,
    write_module,
)
from armpy_testing.backends.fake_distributions import FakeSite, fake_site
from armpy_testing.descendants import await_end

TIMEOUT_S = 30.0
"""For what ends by itself: far more than it needs on a busy machine."""

HANG_S = 4.0
"""For what does not end: enough to come to the point where it hangs."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))
    yield tmp_path / "cache" / "probes"
    forget_private_modules()


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeSite]:
    with fake_site(tmp_path_factory.mktemp("site")) as fake:
        yield fake


def module_candidate(path: Path) -> Candidate:
    """A candidate for a module."""
    return Candidate("", str(path), CandidateKind.DIRECTORY, name=path.stem, path=str(path))


def probe(folder: Path, source: str, timeout_s: float = TIMEOUT_S, **files: str) -> ProbeResult:
    """Probe one module."""
    path = write_module(folder, "Arm_Probed_backend", source, **files)
    (result,) = probe_candidates([module_candidate(path)], timeout_s=timeout_s)
    return result


def describe(backend: IBackendInternal) -> Mapping[str, object]:
    """Examine a backend in the child."""
    return {"class": type(backend).__name__, "in_process": os.getpid()}


@pytest.mark.slow
def test_a_sound_module_passes_and_is_not_imported_here(tmp_path: Path) -> None:
    path = write_module(tmp_path, "Arm_Npu_backend", module_source("Npu", extra="print('hello')"))
    (result,) = probe_candidates(
        [module_candidate(path)], timeout_s=TIMEOUT_S, examine=f"{__name__}:describe"
    )
    assert result.passed, result
    assert (result.backend_id, result.api_version) == ("Npu", BACKEND_API_VERSION)
    assert (result.device_type, result.output) == ("ACCELERATOR", "hello\n")
    assert result.details["class"] == "Backend"
    assert result.details["in_process"] != os.getpid()
    assert result.duration_s > 0
    assert private_modules() == set()
    assert {entry.name for entry in tmp_path.iterdir()} == {path.name, "cache"}


CRASHES = {
    "abort": ("import os; os.abort()", "its process was ended by SIGABRT"),
    "segfault": ("import ctypes; ctypes.string_at(0)", "its process was ended by SIGSEGV"),
    "kill": ("import os; os.kill(os.getpid(), 9)", "its process was ended by SIGKILL"),
    "odd signal": ("import os; os.kill(os.getpid(), 40)", "its process was ended by signal 40"),
}


@pytest.mark.skipif(sys.platform == "win32", reason="this system ends no process by a signal")
@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CRASHES)
def test_a_module_that_crashes_is_recorded_with_the_signal(tmp_path: Path, case: str) -> None:
    source, reason = CRASHES[case]
    result = probe(tmp_path, source)
    assert (result.outcome, result.reason) == (ProbeOutcome.CRASHED, reason)
    assert result.status is CandidateStatus.CRASHED
    assert ("Arm_Probed_backend.py" in result.output) is (case in ("abort", "segfault"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("code", [0, 3])
def test_a_module_that_leaves_the_process_is_recorded_with_the_code(
    tmp_path: Path, code: int
) -> None:
    result = probe(tmp_path, f"import os; os._exit({code})")
    assert (result.outcome, result.exit_code) == (ProbeOutcome.EXITED, code)
    assert result.reason == f"its process exited with code {code} while it was loaded"
    assert result.status is CandidateStatus.CRASHED


@pytest.mark.slow
def test_a_module_that_hangs_is_killed_with_what_it_has_started(tmp_path: Path) -> None:
    source = f"""
    import subprocess, sys, time
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    open({str(tmp_path / "pid")!r}, "w").write(str(child.pid))
    time.sleep(600)
    """
    start = time.monotonic()
    result = probe(tmp_path, source, HANG_S)
    assert time.monotonic() - start < HANG_S + 10
    assert (result.outcome, result.status) == (ProbeOutcome.HUNG, CandidateStatus.HUNG)
    assert result.reason == "it did not finish within 4 s"
    assert "Arm_Probed_backend.py" in result.output, "the place where it hangs"
    state = Path(f"/proc/{(tmp_path / 'pid').read_text()}/stat")
    deadline = time.monotonic() + 10  # a busy system takes its time to end what was killed
    while (running := _is_running(state)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not running


def _is_running(state: Path) -> bool:
    """Whether a process is neither gone nor only waiting to be noticed as ended."""
    return state.exists() and state.read_text().split()[2] not in "ZX"


@pytest.mark.slow
def test_a_module_has_no_input_and_its_output_is_bounded(tmp_path: Path) -> None:
    source = """
    import os, sys
    print(repr(sys.stdin.read()))
    sys.stderr.write("x" * 1000000 + "end")
    sys.stdout.flush(); sys.stderr.flush()
    os.close(1); os.close(2)
    import time; time.sleep(0.2)
    1 / 0
    """
    result = probe(tmp_path, source)
    assert result.reason == "ZeroDivisionError: division by zero"
    assert len(result.output) == KEPT_BYTES
    assert result.output.endswith("xend''\n")
    assert probe(tmp_path / "other", "print(repr(input()))").reason.startswith("EOFError")


@pytest.mark.slow
def test_a_process_in_a_session_of_its_own_ends_and_keeps_no_output_open(tmp_path: Path) -> None:
    source = f"""
    import os, subprocess
    child = subprocess.Popen(["yes"], start_new_session=True)
    open({str(tmp_path / "pid")!r}, "w").write(str(child.pid))
    os._exit(5)
    """
    result = probe(tmp_path, source)
    await_end(int((tmp_path / "pid").read_text()))
    assert (result.outcome, result.exit_code) == (ProbeOutcome.EXITED, 5)


@pytest.mark.slow
def test_threads_that_a_backend_leaves_running_do_not_matter(tmp_path: Path) -> None:
    extra = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()"
    assert probe(tmp_path, module_source(extra=extra)).passed


@pytest.mark.slow
def test_with_probing_what_does_not_pass_is_never_imported(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    mark = f"open({str(tmp_path)!r} + '/' + str(__import__('os').getpid()), 'w')\n"
    write_module(folder, "Arm_Abort_backend", mark + "import os; os.abort()")
    write_module(folder, "Arm_Exit_backend", mark + "import os; os._exit(0)")
    write_module(folder, "Arm_Good_backend", module_source("Good"))
    write_module(folder, "Arm_Other_backend", module_source("Good"))
    write_module(folder, "Arm_Raise_backend", mark + "1 / 0")
    options = PluginOptions(folder, probe=True, probe_timeout_s=TIMEOUT_S)
    registry = BackendRegistry.discover(options)
    assert registry.get("CpuRef").get_id() == "CpuRef"
    assert not list(tmp_path.glob("[0-9]*")), "nothing is probed that is not asked for"
    runtime = Runtime(RuntimeOptions(registry=registry))
    assert runtime.get_device_spec().supported_backends[0] == "Good"
    states = {c.name: c.status.value for c in registry.candidates if c.path}
    assert states == {
        "Arm_Abort_backend": "crashed",
        "Arm_Exit_backend": "crashed",
        "Arm_Good_backend": "registered",
        "Arm_Other_backend": "duplicate",
        "Arm_Raise_backend": "failed",
    }
    assert len(private_modules()) == 1
    assert str(os.getpid()) not in {path.name for path in tmp_path.glob("[0-9]*")}
    assert len(list(tmp_path.glob("[0-9]*"))) == 3
    assert registry.options is options


@pytest.mark.slow
def test_damage_to_the_interpreter_stays_in_the_probe(tmp_path: Path) -> None:
    damage = "import builtins, sys\nbuiltins.len = None\nsys.modules['json'] = None\n1 / 0"
    write_module(tmp_path / "plugins", "Arm_Bad_backend", damage)
    registry = BackendRegistry.discover(
        PluginOptions(tmp_path / "plugins", probe=True, probe_timeout_s=TIMEOUT_S)
    )
    assert "CpuRef" in {backend.get_id() for backend in registry.available()}
    (bad,) = [c for c in registry.candidates if c.name == "Arm_Bad_backend"]
    assert bad.status in (CandidateStatus.CRASHED, CandidateStatus.FAILED)
    assert callable(len)
    assert sys.modules["json"] is json


@pytest.mark.slow
def test_a_module_that_changes_its_id_after_the_probe_is_rejected(tmp_path: Path) -> None:
    extra = f"import os\ndef get_backend_id(): return 'Here' if os.getpid() == {os.getpid()} "
    source = module_source("There", extra=extra + "else 'There'")
    write_module(tmp_path / "plugins", "Arm_Fickle_backend", source)
    registry = BackendRegistry.discover(
        PluginOptions(tmp_path / "plugins", probe=True, probe_timeout_s=TIMEOUT_S)
    )
    with pytest.raises(BackendUnavailableError, match="returned 'Here', and 'There' when it was"):
        registry.get("There")


def test_what_is_registered_by_code_cannot_be_probed() -> None:
    (result,) = probe_candidates([Candidate("Mine", "code")])
    assert (result.outcome, result.status) == (ProbeOutcome.NOT_RUN, CandidateStatus.REJECTED)


def test_without_a_process_nothing_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    monkeypatch.setattr(sys, "_base_executable", "", raising=False)  # taken on Windows
    result = probe(tmp_path, module_source())
    assert result.outcome is ProbeOutcome.NOT_RUN
    assert "no process can be started" in result.reason


@pytest.mark.slow
def test_the_users_interrupt_ends_all_probes_at_once(tmp_path: Path) -> None:
    path = write_module(tmp_path, "Arm_Hang_backend", "import time; time.sleep(600)")
    main = threading.main_thread().ident
    timer = threading.Timer(1.0, signal.pthread_kill, (main, signal.SIGINT))
    start = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        probe_candidates([module_candidate(path)], timeout_s=600)
    timer.join()
    assert time.monotonic() - start < 60
    assert not list((tmp_path / "cache").rglob("*.json"))


@pytest.mark.parametrize(
    ("source", "examine", "outcome", "reason"),
    [
        (module_source("Npu"), "", ProbeOutcome.OK, ""),
        (module_source("Npu"), f"{__name__}:describe", ProbeOutcome.OK, ""),
        (module_source("Npu"), f"{__name__}:nothing", ProbeOutcome.RAISED, "AttributeError"),
        (module_source("Npu"), "builtins:id", ProbeOutcome.OK, ""),
        (module_source("Npu"), "builtins:str.nothing", ProbeOutcome.RAISED, "AttributeError"),
        (module_source("Npu"), "builtins:iter", ProbeOutcome.RAISED, "TypeError"),
        (module_source(""), "", ProbeOutcome.REJECTED, "'' is not a valid backend id"),
        ("raise SystemExit", "", ProbeOutcome.EXITED, "SystemExit"),
        ("raise SystemExit(7)", "", ProbeOutcome.EXITED, "SystemExit: 7"),
        ("raise SystemExit('text')", "", ProbeOutcome.EXITED, "SystemExit: text"),
    ],
)
def test_what_the_child_finds_out(
    tmp_path: Path, source: str, examine: str, outcome: ProbeOutcome, reason: str
) -> None:
    path = write_module(tmp_path, "Arm_Npu_backend", source)
    result = load_and_describe(module_candidate(path), examine)
    assert result.outcome is outcome
    assert result.reason.startswith(reason)
    if outcome is ProbeOutcome.EXITED:
        assert result.exit_code == {"": 0, "7": 7, "text": 1}[result.reason[12:]]


class TestMemory:
    """The stored results of earlier probes."""

    def marked(self, folder: Path, source: str) -> tuple[Candidate, Path]:
        """A candidate that writes down each time it is imported, and where."""
        mark = folder / "mark"
        header = f"open({str(mark)!r}, 'a').write('x')\n"
        path = write_module(folder / "plugins", "Arm_Marked_backend", header + source)
        return module_candidate(path), mark

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("source", "outcome"),
        [(module_source(), ProbeOutcome.OK), ("import os; os.abort()", ProbeOutcome.CRASHED)],
    )
    def test_an_unchanged_file_is_not_probed_again(
        self, tmp_path: Path, source: str, outcome: ProbeOutcome
    ) -> None:
        candidate, mark = self.marked(tmp_path, source)
        (first,) = probe_candidates([candidate], timeout_s=TIMEOUT_S)
        (second,) = probe_candidates([candidate], timeout_s=TIMEOUT_S)
        assert (first.outcome, first.remembered) == (outcome, False)
        assert (second.outcome, second.remembered) == (outcome, True)
        assert (second.reason, second.output) == (first.reason, first.output)
        assert mark.read_text() == "x"

    @pytest.mark.slow
    def test_a_changed_file_is_probed_again(self, tmp_path: Path) -> None:
        candidate, mark = self.marked(tmp_path, "import time; time.sleep(600)")
        (first,) = probe_candidates([candidate], timeout_s=HANG_S)
        assert first.outcome is ProbeOutcome.HUNG
        self.marked(tmp_path, module_source())
        (second,) = probe_candidates([candidate], timeout_s=HANG_S)
        assert (second.outcome, second.remembered) == (ProbeOutcome.OK, False)
        assert mark.read_text() == "xx"

    @pytest.mark.slow
    @pytest.mark.parametrize("source", ["1 / 0", "raise SystemExit(1)", module_source("")])
    def test_what_other_things_may_cure_is_probed_every_time(
        self, tmp_path: Path, source: str
    ) -> None:
        candidate, mark = self.marked(tmp_path, source)
        for _ in range(2):
            (result,) = probe_candidates([candidate], timeout_s=TIMEOUT_S)
            assert not result.remembered
        assert mark.read_text() == "xx"

    @pytest.mark.slow
    @pytest.mark.parametrize("damage", ["empty", "flipped", "cut", "without a checksum"])
    def test_a_damaged_memory_only_costs_time(
        self, tmp_path: Path, cache: Path, damage: str
    ) -> None:
        candidate, _ = self.marked(tmp_path, module_source())
        (first,) = probe_candidates([candidate], timeout_s=TIMEOUT_S)
        (file,) = cache.iterdir()
        sound = file.read_bytes()
        contents = {
            "empty": b"",
            "flipped": sound.replace(b'"ok"', b'"oj"'),
            "cut": sound[:-2],
            "without a checksum": sound.partition(b"\n")[2],
        }
        file.write_bytes(contents[damage])
        (second,) = probe_candidates([candidate], timeout_s=TIMEOUT_S)
        assert (second.outcome, second.remembered) == (first.outcome, False)
        (third,) = probe_candidates([candidate], timeout_s=TIMEOUT_S)
        assert third.remembered

    @pytest.mark.slow
    def test_a_module_whose_files_cannot_be_read_is_not_remembered(self, tmp_path: Path) -> None:
        package = write_module(tmp_path, "Arm_Npu_backend", module_source(), part="")
        (package / "dangling").symlink_to("nothing")
        for _ in range(2):
            (result,) = probe_candidates([module_candidate(package)], timeout_s=TIMEOUT_S)
            assert (result.passed, result.remembered) == (True, False)

    @pytest.mark.slow
    def test_a_memory_that_cannot_be_written_only_costs_time(
        self, tmp_path: Path, cache: Path
    ) -> None:
        cache.parent.write_text("a file where a folder should be")
        candidate, mark = self.marked(tmp_path, module_source())
        for _ in range(2):
            (result,) = probe_candidates([candidate], timeout_s=TIMEOUT_S)
            assert result.passed
        assert mark.read_text() == "xx"

    @pytest.mark.slow
    def test_a_memory_that_cannot_be_replaced_leaves_no_rest(
        self, tmp_path: Path, cache: Path
    ) -> None:
        candidate, _ = self.marked(tmp_path, module_source())
        probe_candidates([candidate], timeout_s=TIMEOUT_S)
        (file,) = cache.iterdir()
        file.unlink()
        (file / "folder").mkdir(parents=True)
        (result,) = probe_candidates([candidate], timeout_s=TIMEOUT_S)
        assert result.passed
        assert list(cache.iterdir()) == [file]


def test_the_fingerprint_changes_with_all_that_counts(
    tmp_path: Path, site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_module(tmp_path, "Arm_Npu_backend", module_source("Npu"), part="")
    candidate = module_candidate(path)
    seen = {fingerprint(candidate, {})}
    seen.add(fingerprint(candidate, {"examine": "x"}))
    (path / "part.py").write_text("x")
    seen.add(fingerprint(candidate, {}))
    os.utime(path / "part.py", ns=(1, 1))
    seen.add(fingerprint(candidate, {}))
    (path / "part.py").write_text("y")  # of the same size, and the time is set back
    os.utime(path / "part.py", ns=(1, 1))
    seen.add(fingerprint(candidate, {}))
    site.install_backend("Other")
    seen.add(fingerprint(candidate, {}))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, "/no/such/folder"])
        seen.add(fingerprint(candidate, {}))
    # Windows has no time of a change that programs cannot set back.
    assert len(seen - {""}) == (6 if sys.platform == "win32" else 7)
    with (path / "large.bin").open("wb") as file:
        file.truncate(17 << 20)
    assert fingerprint(candidate, {}) not in {*seen, ""}


@pytest.mark.parametrize(
    ("reference", "is_found"),
    [
        ("armpy_reference:ReferenceBackend", True),
        ("armpy_testing.backends.fake_backends:FakeBackend", True),
        ("pytest_timeout:pytest_configure", True),
        ("no_such_module:x", False),
        ("sys:x", False),
        (":x", False),
        (" ", False),
    ],
)
def test_an_entry_points_fingerprint_is_that_of_its_package(reference: str, is_found: bool) -> None:
    candidate = Candidate("X", "x 1.0", CandidateKind.ENTRY_POINT, name=reference)
    assert bool(fingerprint(candidate, {})) is is_found


def test_where_things_are_remembered() -> None:
    a, b = (Path(name).absolute() for name in ("/a", "/b"))
    assert cache_directory({"ARMPY_CACHE_DIR": str(a), "XDG_CACHE_HOME": str(b)}) == a
    assert cache_directory({"ARMPY_CACHE_DIR": "~/x"}) == Path("~/x").expanduser()
    assert cache_directory({"XDG_CACHE_HOME": str(b)}) == b / "armpy"
    home = Path("~/.cache/armpy").expanduser()
    assert cache_directory({"XDG_CACHE_HOME": "relative"}) == home
    assert cache_directory({}) == home


@pytest.mark.parametrize(
    "fields",
    [
        None,
        {},
        {"outcome": "better than ok"},
        {"outcome": ["ok"]},
        {"outcome": "rejected"},
        {"outcome": "raised", "reason": " "},
        {"outcome": "ok", "reason": 3},
        {"outcome": "ok", "exit_code": "0"},
        {"outcome": "ok", "duration_s": None, "details": 3},
        {"outcome": "ok", "remembered": "yes"},
        {"outcome": "ok", "more": 1},
    ],
)
def test_fields_that_are_no_result_are_none(fields: object) -> None:
    assert result_from(fields) is None


def test_what_a_variable_causes_is_not_remembered_without_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "Some_backend.py"
    path.write_text("")
    candidate = Candidate(
        "Some", str(path), CandidateKind.DIRECTORY, "Some_backend", path=str(path)
    )
    before = fingerprint(candidate, {})
    monkeypatch.setenv("ARMPY_NUMBA_ISA", "sse9")
    changed = fingerprint(candidate, {})
    monkeypatch.delenv("ARMPY_NUMBA_ISA")
    assert before
    assert changed != before
    assert fingerprint(candidate, {}) == before
