"""The crash cases find a backend that fails, hangs, or ends its process, and no other one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from armpy.execution import RuntimeOptions
from armpy_conformance.crash import CrashOutcome, CrashResult, CrashRun, run_crash
from armpy_conformance.crash.cases import CASES
from armpy_testing.example_backends import EXAMPLES

pytestmark = pytest.mark.slow

DRIVERS = EXAMPLES / "drivers"
SUCCESS, FAILURE = CrashOutcome.SUCCESS, CrashOutcome.FAILURE
HANG, CRASH = CrashOutcome.HANG, CrashOutcome.CRASH


def run(filter: str, *, backend: str = "SampleFaulty", timeout_s: float = 60) -> CrashRun:
    """Run some cases on the sample driver, which finds its faults in the environment."""
    options = RuntimeOptions(dynamic_backends_path=DRIVERS)
    return run_crash(backend, runtime_options=options, filter=filter, timeout_s=timeout_s, jobs=2)


def test_a_sound_backend_succeeds_in_every_case() -> None:
    result = run("sum/FLOAT32")
    assert result.problems == ()
    assert result.is_passed
    ids = [case.case for case in result.results]
    assert ids == ["support", *(f"{case.id}/sum/FLOAT32" for case in CASES)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("faults", "case", "outcome", "text"),
    [
        ("execute=raise:20", "parallel/one network", FAILURE, "the device reports a failure"),
        ("execute=wrong:20", "parallel/many networks", FAILURE, "elements are wrong"),
        ("execute=hang:2", "inputs/large", HANG, "no end within 5 s"),
        ("execute=segfault:30", "parallel/one network", CRASH, "was ended by SIGSEGV"),
        ("optimize=kill:4", "parallel/many runtimes", CRASH, "was ended by SIGKILL"),
        ("execute=child:2", "inputs/large", CRASH, "a fault ended process"),
        ("execute=exit", "cancellation/random", CRASH, "exited with code 0"),
        ("execute=segfault", "killed/loading", CRASH, "ended by SIGSEGV"),
        ("execute=segfault", "killed/workers", FAILURE, "process has ended"),
        ("execute=abort", "memory/pressure", CRASH, "was ended by SIGABRT"),
    ],
)
def test_what_is_planted_is_found(
    monkeypatch: pytest.MonkeyPatch, faults: str, case: str, outcome: CrashOutcome, text: str
) -> None:
    monkeypatch.setenv("ARMPY_SAMPLE_FAULTS", faults)
    result = run(f"{case}/activation", timeout_s=5 if outcome is HANG else 60)
    asked, found_result = result.results
    assert asked.outcome is SUCCESS
    assert (found_result.outcome, found_result.case) == (outcome, f"{case}/activation/FLOAT32")
    assert text in found_result.text
    assert not result.is_passed
    if "child" in faults:
        assert "a process of the driver ends" in found_result.output


def test_a_backend_that_cannot_even_be_asked_has_crashed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMPY_SAMPLE_FAULTS", "load=segfault")
    (asked,) = run("").results
    assert (asked.case, asked.outcome) == ("support", CRASH)
    assert "Segmentation fault" in asked.output


def test_a_backend_that_there_is_not_fails() -> None:
    (asked,) = run("", backend="Missing").results
    assert asked.outcome is FAILURE
    assert "there is no backend 'Missing'" in asked.text


def test_a_backend_that_takes_nothing_has_not_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMPY_SAMPLE_FAULTS", "support=refuse")
    result = run("")
    assert not result.is_passed
    assert len(result.left_out) == 10


def test_a_leak_is_found(tmp_path: Path) -> None:
    source = """
        import os
        from armpy_reference import ReferenceBackend
        from armpy.types import DeviceType
        class Backend(ReferenceBackend):
            def get_id(self) -> str:
                return "Leaky"
            def get_devices(self) -> "tuple[DeviceInfo, ...]":
                return (DeviceInfo(device_type=DeviceType.ACCELERATOR),)
            def create_memory_manager(self):
                os.open("/dev/null", os.O_RDONLY)
                return super().create_memory_manager()
        def backend_factory():
            return Backend()
    """
    from armpy_testing.backends.dynamic_modules import module_source, write_module

    write_module(tmp_path / "leaky", "Test_Leaky_backend", module_source("Leaky", extra=source))
    options = RuntimeOptions(dynamic_backends_path=tmp_path / "leaky")
    result = run_crash("Leaky", runtime_options=options, filter="loads/in a row/sum/FLOAT32")
    (problem,) = result.problems
    assert problem.outcome is FAILURE
    assert "leaked 44 open descriptors" in problem.text


def test_the_command_says_what_it_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("click")
    from armpy_testing.command_line import armpy_command

    command = ["conformance", "crash", "--backend", "SampleFaulty"]
    command += ["--dynamic-backends-path", str(DRIVERS), "--filter", "large/activation"]
    assert armpy_command(command) == 0
    out = capsys.readouterr().out
    assert "SUCCESS  inputs/large/activation/FLOAT32" in out
    assert "SampleFaulty: 2 SUCCESS in" in out
    assert (
        armpy_command([*command, "--backend-option", "SampleFaulty.faults=execute=segfault"]) == 1
    )
    out = capsys.readouterr().out
    assert "CRASH    inputs/large/activation/FLOAT32" in out
    assert "Fatal Python error: Segmentation fault" in out
    monkeypatch.setenv("ARMPY_SAMPLE_FAULTS", "execute=raise")
    assert armpy_command([*command, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["counts"] == {"SUCCESS": 1, "FAILURE": 1, "HANG": 0, "CRASH": 0}


def test_the_command_tries_every_backend_out_and_names_what_cannot_be(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("click")
    from armpy_testing.command_line import armpy_command

    def tried(backend_id: str, **_: object) -> CrashRun:
        outcome = CRASH if backend_id == "SampleFaulty" else SUCCESS
        results = CrashResult("support", SUCCESS), CrashResult("inputs/large/sum", outcome)
        return CrashRun(backend_id, 0, results, (), 0.0)

    monkeypatch.setattr("armpy_conformance.cli.conformance.crash.run_crash", tried)
    command = ["conformance", "crash", "--all"]
    assert armpy_command([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [report["backend"] for report in document["backends"]] == ["NumbaAcc", "CpuRef"]
    assert document["unusable"] == []
    (tmp_path / "Arm_Odd_backend.py").write_text("")
    command += ["--dynamic-backends-path", str(tmp_path)]
    assert armpy_command([*command, "--dynamic-backends-path", str(DRIVERS)]) == 1
    out = capsys.readouterr().out
    assert "FAILED  SampleFaulty: 1 SUCCESS, 1 CRASH" in out
    assert "passed  CpuRef: 2 SUCCESS" in out
    assert "cannot be used  " in out
