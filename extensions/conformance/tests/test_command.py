from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("click")

from armpy_conformance import Case, CaseResult, ConformanceResult, Outcome, all_cases
from armpy_conformance.cli.conformance.trials import report_all
from armpy_conformance.cli.conformance.work import print_conformance
from armpy_conformance.result import CONTRACT
from armpy_testing.backends.dynamic_modules import module_source, write_module
from armpy_testing.checkout import checkout_path
from armpy_testing.command_line import armpy_command
from armpy_testing.digits import MODEL

pytestmark = pytest.mark.slow

EXAMPLES = checkout_path("backends", "dynamic_examples")


@pytest.fixture
def by_hand() -> int:
    """How many cases were worked out by hand."""
    return sum("by-hand" in case.id for case in all_cases())


def test_a_backend_that_passes_exits_with_0(
    by_hand: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert armpy_command(["conformance", "CpuRef", "--in-process", "--filter", "by-hand"]) == 0
    out = capsys.readouterr().out
    assert f"CpuRef: {by_hand} passed in" in out
    assert f"layers run on CpuRef: {by_hand}; of its claims, 100 % ran on it" in out


def test_the_result_can_be_had_as_json(by_hand: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        armpy_command(["conformance", "CpuRef", "--in-process", "--filter", "by-hand", "--json"])
        == 0
    )
    document = json.loads(capsys.readouterr().out)
    assert document["is_passed"] is True
    assert document["counts"]["passed"] == by_hand


def test_a_soak_executes_networks_so_often(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--filter", "executions-go-on-for-long", "--json"]
    for soak, text in (
        ([], "it needs soak, a number of executions"),
        (["--soak", "20"], ""),
    ):
        assert armpy_command(["conformance", "CpuRef", "--in-process", *options, *soak]) == 0
        (result,) = json.loads(capsys.readouterr().out)["results"]
        assert (result["outcome"], result["text"]) == ("passed", text)


def test_problems_exit_with_1_and_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [*broken_options(tmp_path, "WrongResults"), "--filter", "arm-nn-sample"]
    assert armpy_command(["conformance", "BrokenWrongResults", "--in-process", *options]) == 1
    assert "failed: ElementwiseBinary/by-hand-arm-nn-sample" in capsys.readouterr().out


def test_several_filters_take_what_has_any_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    both = ["--filter", "Rank/basic/float32", "--filter", "by-hand-arm-nn-sample"]
    assert armpy_command(["conformance", "CpuRef", "--list", *both]) == 0
    listed = capsys.readouterr().out.split()
    assert listed == [
        "ElementwiseBinary/by-hand-arm-nn-sample/float32",
        "Rank/basic/float32-to-signed32",
        "Rank/basic/float32-to-signed32+many-elements",
        "ElementwiseBinary/by-hand-arm-nn-sample/float32+no-elements",
        "Rank/basic/float32-to-signed32+no-elements",
    ]


def broken_options(folder: Path, name: str) -> list[str]:
    """Options that find one of the broken examples, and nothing else."""
    broken = EXAMPLES / "broken"
    shutil.copy(broken / f"Broken_{name}_backend.py", folder)
    shutil.copytree(broken / "Broken_common", folder / "Broken_common", dirs_exist_ok=True)
    return ["--dynamic-backends-path", str(folder)]


def test_the_first_failure_ends_a_run_that_fails_fast(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [*broken_options(tmp_path, "WrongResults"), "--filter", "ElementwiseBinary/"]
    run = ["conformance", "BrokenWrongResults", "--in-process", *options, "--json"]
    assert armpy_command(run) == 1
    whole = json.loads(capsys.readouterr().out)
    assert whole["counts"]["failed"] > 1
    assert armpy_command([*run, "--fail-fast"]) == 1
    first = json.loads(capsys.readouterr().out)
    outcomes = [result["outcome"] for result in first["results"]]
    assert outcomes.index("failed") == len(outcomes) - 1
    assert not first["is_passed"]


def test_what_failed_last_time_comes_first_and_a_time_limit_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))
    options = [*broken_options(tmp_path, "WrongResults"), "--filter", "by-hand"]
    run = ["conformance", "BrokenWrongResults", "--in-process", *options, "--json"]
    assert armpy_command([*run, "--fail-fast"]) == 1
    failed = json.loads(capsys.readouterr().out)["results"][-1]["case"]
    assert armpy_command([*run, "--time-limit", "0.000001"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [result["case"] for result in document["results"]] == [failed]
    assert document["shortcomings"][0].endswith("cases were not tried")


def test_an_interrupted_run_reports_on_what_was_tried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("armpy_conformance.cli.conformance.work._PERIOD_S", 0.0)
    judged = []

    def interrupted(subject: object, case: Case) -> CaseResult:
        judged.append(case.id)
        if len(judged) > 1:
            raise KeyboardInterrupt
        return CaseResult(case.id, case.operation.name, "", Outcome.PASSED, ran=("Rank FLOAT32",))

    monkeypatch.setattr("armpy_conformance.conformance.judge", interrupted)
    assert armpy_command(["conformance", "CpuRef", "--in-process", "--filter", "Rank/basic"]) == 1
    captured = capsys.readouterr()
    assert "cases were not tried" in captured.out
    assert "1 of" in captured.err


def test_processes_give_the_same_results(capsys: pytest.CaptureFixture[str]) -> None:
    run = ["conformance", "CpuRef", "--filter", "by-hand", "--json"]
    documents = []
    for options in ([], ["--jobs", "2"]):
        assert armpy_command([*run, *options]) == 0
        document = json.loads(capsys.readouterr().out)
        documents.append({**document, "duration_s": 0})
    assert documents[0] == documents[1]


def test_all_backends_are_tried_and_those_that_cannot_be_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--all", "--filter", "by-hand-arm-nn-sample"]
    assert armpy_command(["conformance", *options]) == 0
    out = capsys.readouterr().out
    assert "passed  CpuRef: 2 passed" in out
    assert "passed  NumbaAcc: 2 passed" in out
    options.append("--in-process")
    spoilt = broken_options(tmp_path, "MissingDependency")
    assert armpy_command(["conformance", *options, *spoilt]) == 1
    out = capsys.readouterr().out
    assert "passed  CpuRef: 2 passed" in out
    assert "cannot be used  " in out
    assert armpy_command(["conformance", *options, *broken_options(tmp_path, "WrongResults")]) == 1
    assert "FAILED  BrokenWrongResults: " in capsys.readouterr().out


ABSENT = """
    from armpy.errors import DeviceNotFoundError

    def without_driver(*_):
        raise DeviceNotFoundError("the driver is missing", where="Absent", fix="Install it")

    Backend.get_layer_support = Backend.create_backend_context = without_driver
"""


@pytest.mark.parametrize(
    ("trial", "names"),
    [
        (["cases", "--filter", "by-hand-arm-nn-sample"], ["Absent"]),
        (["crash", "--filter", "inputs/zero-sized/sum/FLOAT32"], ["--backend", "Absent"]),
    ],
)
def test_a_backend_without_its_device_is_not_tried_unless_it_is_named(
    trial: list[str], names: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_module(tmp_path, "Vendor_Absent_backend", module_source("Absent", extra=ABSENT))
    run = ["conformance", *trial, "--dynamic-backends-path", str(tmp_path)]
    assert armpy_command([*run, *names]) == 1
    assert "create_backend_context: the driver is missing. Install it" in capsys.readouterr().err
    assert armpy_command([*run, "--all"]) == 0
    out = capsys.readouterr().out
    assert "passed  CpuRef: " in out
    line = "not tried  Absent / create_backend_context: the driver is missing. Install it."
    assert line in out


def test_the_document_has_the_backends_that_were_not_tried(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report_all([], ["Broken: it is"], ["Absent: the driver is missing"], as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["not_tried"] == ["Absent: the driver is missing"]
    assert document["unusable"] == ["Broken: it is"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["cases"], "Give the id of a backend, or --all"),
        (["CpuRef", "--all"], "Give the id of a backend, or --all"),
        (["--all", "--known-failures", str(MODEL)], "--known-failures goes with one backend"),
    ],
)
def test_options_that_do_not_go_together_exit_with_2(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert armpy_command(["conformance", *options]) == 2
    assert said in capsys.readouterr().err


def test_equal_failures_and_reasons_are_grouped(capsys: pytest.CaptureFixture[str]) -> None:
    failed = [
        CaseResult(
            f"A/{i}", "A", "FLOAT32", Outcome.FAILED, f"Npu / A(k={i}): element {i} is {i}.5"
        )
        for i in range(50)
    ]
    rules = [
        CaseResult(f"contract/area/{i}", CONTRACT, "", Outcome.UNSUPPORTED, "no tensors")
        for i in range(4)
    ]
    others = [
        CaseResult(f"B{i}/x", f"B{i}", "INT8", Outcome.UNSUPPORTED, "not claimed")
        for i in range(30)
    ]
    print_conformance(ConformanceResult("Npu", "1", "2", (*failed, *rules, *others)))
    text = capsys.readouterr().out
    assert text.count("element") == 1
    assert "and 49 other cases of A like this one" in text
    assert text.count("not claimed") == 10
    assert "and 20 cases for 20 other reasons" in text
    _, _, apart = text.partition("Unsupported rules of the contract")
    assert apart.index("no tensors") < apart.index("not claimed")
    assert "B29" not in text
