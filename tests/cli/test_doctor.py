"""`armpy doctor` on real directories and distributions, each candidate in a real process."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any  # JSON documents

import pytest
from armpy_reference import ReferenceBackend

import armpy
from armpy.backend import (
    BACKEND_API_VERSION,
    ILayerSupport,
    PreparationRequest,
    ReasonCode,
    Support,
)
from armpy.cli.doctor.trial import examine_backend
from armpy.model.archive import model_cache
from armpy.ops.operation import OperandInfos, Operation
from armpy_testing.backends.fake_backends import FakeBackend, registry_of
from armpy_testing.backends.fake_distributions import fake_site
from armpy_testing.command_line import Cli, armpy_command, find_backends_in
from armpy_testing.systems import NEEDS_OWNERS
from tests.support.pages import ROOT
from tests.support.toy_format import toy_plugin

for library in ("click", "PIL"):
    pytest.importorskip(library)

BROKEN = ROOT / "backends" / "dynamic_examples" / "broken"

PATIENT_S = 300
"""Limit of a probe that ends by itself, on a machine however busy."""

HANG_S = 5
"""Limit of a probe that hangs."""

HANGING = BROKEN / "Broken_HangAtImport_backend.py"

AUTHOR = "Report it to its author"

STATES = {
    "AbortAtImport": ("crashed", r"ended by SIGABRT", "Remove it"),
    "DropsLayers": ("problem", "does not hold every layer of the offered view", AUTHOR),
    "DuplicateId": ("duplicate", "another backend has the id 'CpuRef': armpy", "Remove one"),
    "ExceptionAtImport": ("failed", "RuntimeError: the device does not answer", AUTHOR),
    "ExitAtImport": ("crashed", "its process exited with code 0", "Remove it"),
    "FailsToExecute": ("problem", r"OSError\('the device was removed'\)", AUTHOR),
    "FailsToPrepare": ("problem", r"MemoryError\('the device has no memory left'\)", AUTHOR),
    "HangAtImport": ("hung", rf"it did not finish within {HANG_S} s", "Remove it"),
    "MissingDependency": ("failed", "No module named 'acme_acc", "Install the package that br"),
    "MutatesInputs": ("problem", "an input was changed by the execution", AUTHOR),
    "NoGetBackendId": ("rejected", r"it has no get_backend_id\(\)", ""),
    "NullId": ("rejected", "its get_backend_id returned None", ""),
    "OptimizeRaises": ("problem", "the compiler does not know this pattern", AUTHOR),
    "OtherMajor": ("rejected", rf"1.5, which does not fit {BACKEND_API_VERSION}\. The page", ""),
    "SegfaultAtImport": ("crashed", "ended by SIGSEGV", "Remove it"),
    "SyntaxError": ("failed", r"SyntaxError: .*line \d\)", AUTHOR),
    "SystemExitAtImport": ("failed", "SystemExit: usage", "Remove it"),
    "VersionTooNew": ("rejected", r"2.999, which does not fit .* Install a newer armpy", ""),
    "WrongInstance": ("rejected", "its factory made object, not an IBackendInternal", ""),
    "WrongResults": ("problem", "the answer is wrong", AUTHOR),
    "WrongTypes": ("problem", "the answer has the wrong type", AUTHOR),
}
"""State, reason and fix of each broken module; a reason may name the fix itself."""


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of these tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("ARMPY_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture
def installation(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command, for which only one backend is installed, so that nothing has to be probed."""
    find_backends_in(registry_of(FakeBackend("Acme")), monkeypatch)
    return cli


@pytest.fixture(scope="module")
def ward(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of directories with all modules that are broken, and one that is good."""
    modules = {*BROKEN.glob("*_backend.py"), *BROKEN.parent.glob("single_file/*_backend.py")}
    report = report_of(tmp_path_factory.mktemp("ward"), modules - {HANGING}, PATIENT_S)
    hanging = report_of(tmp_path_factory.mktemp("hanging"), {HANGING}, HANG_S)
    report["backends"] += [b for b in hanging["backends"] if b["path"].endswith(HANGING.name)]
    return report


def report_of(folder: Path, modules: set[Path], limit_s: float) -> dict[str, Any]:
    """The report of a directory with copies of modules."""
    for path in modules:
        shutil.copy(path, folder)
        (folder / path.name).chmod(0o644)
    common = shutil.copytree(BROKEN / "Broken_common", folder / "Broken_common")
    (common / "__init__.py").chmod(0o644)
    options = ["--dynamic-backends-path", str(folder), "--probe-timeout", str(limit_s)]
    with contextlib.redirect_stdout(io.StringIO()) as written:
        assert armpy_command(["doctor", "--json", *options]) == 1
    report: dict[str, Any] = json.loads(written.getvalue())
    return report


@pytest.mark.slow
def test_the_state_reason_and_fix_of_every_broken_module_are_named(ward: dict[str, Any]) -> None:
    by_module = {Path(report["path"]).stem: report for report in ward["backends"]}
    for name, (state, reason, fix) in STATES.items():
        report = by_module.pop(f"Broken_{name}_backend")
        assert report["state"] == state, name
        assert re.search(reason, report["reason"]), report["reason"]
        assert report["fix"].startswith(fix), name
        assert bool(report["fix"]) == bool(fix), name
    # Installed packages may bring backends of devices that this machine does not have.
    assert {report["state"] for report in by_module.values()} <= {"ok", "no device"}
    assert "Arm_SampleDynamic_backend" in by_module
    assert ward["num_problems"] == len(STATES) - 1  # without the one that hangs


@pytest.mark.slow
def test_tables_show_facts_states_and_problems(tmp_path: Path, cli: Cli) -> None:
    with fake_site(tmp_path) as site:
        site.install_backend("Acme", version="2.5")
        site.install("bad-backend", {"Bad": "bad_backend:Backend"}, source="import nothing.at_all")
        site.install_plugin("toy", toy_plugin())
        site.install_plugin("twin", toy_plugin("toy", "TOY2"))
        site.install_plugin("dead", "import os; os._exit(3)")
        out = cli.out("doctor", "--debug", "--probe-timeout", str(PATIENT_S), code=1)
    rows = [" ".join(line.split()) for line in out.splitlines()]
    for row in (
        f"armpy {armpy.__version__} in {Path(armpy.__file__).parent}",
        f"backend API {BACKEND_API_VERSION}",
        f"Acme 0.1.0 ok {BACKEND_API_VERSION} acme-backend 2.5",
        "Acme trial 3 of 3 layers ran on it",
        "toy 1.0 ok toy-plugin 1.0",
        "dead 1.0 crashed dead-plugin 1.0",
        "toy front-end toy: toy nets, .toy",
        "problem: Bad: ModuleNotFoundError: No module named 'nothing'. Install the package that "
        "brings the module nothing",
        "Bad | Traceback (most recent call last):",
        "problems: 3",
    ):
        assert row in rows, row
    (twin,) = (row for row in rows if row.startswith("problem: twin"))
    assert "is taken" in twin


def test_facts_are_those_of_this_environment(
    installation: Cli, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARMPY_THREADS", "4")
    facts = installation.document("doctor")["facts"]
    assert f"ARMPY_CACHE_DIR={cache}" in facts["variables"].split(", ")
    assert "ARMPY_THREADS=4" in facts["variables"]
    assert facts["cache"].startswith(f"{cache}, writable")
    assert facts["numpy"].count(".") >= 2
    assert "files: " in facts["isolated backends"]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("ARMPY_MODEL_CACHE", "yes", "is 'yes', not on or off. Set it to one of these, or unset"),
        ("ARMPY_NUMBA_CACHE_MB", "lots", "is 'lots', not a number of MiB. Set it to one"),
    ],
)
def test_a_wrong_variable_is_a_problem_and_a_warning_of_other_commands(
    name: str, value: str, text: str, installation: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation.out("doctor")
    monkeypatch.setenv(name, value)
    assert f"problem: {name} {text}" in installation.out("doctor", code=1)
    assert f"armpy: warning: {name} {text}" in installation("backends")[2]


def test_a_cache_that_cannot_be_used_is_a_problem(
    installation: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "file"))
    out = installation.out("doctor", code=1)
    assert re.search(r"problem: cache: nothing is kept: .*file.*Set ARMPY_CACHE_DIR to", out)
    monkeypatch.setenv("ARMPY_COMPILED_CACHE", "off")
    assert installation.document("doctor")["facts"]["cache"] == "switched off"
    monkeypatch.delenv("ARMPY_COMPILED_CACHE")
    monkeypatch.delenv("ARMPY_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)  # Windows' folder
    monkeypatch.setattr("armpy.core.file_ownership.os.path.expanduser", lambda path: path)
    assert "nothing is kept: the user has no home directory" in installation.out("doctor", code=1)


@NEEDS_OWNERS
def test_a_cache_that_others_can_write_to_is_a_problem(
    installation: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(model_cache.VARIABLE, "on")
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path))
    (tmp_path / "models").mkdir(mode=0o755)
    installation.out("doctor")
    (tmp_path / "models").chmod(0o777)
    assert re.search(r"can be written by everybody; run: chmod", installation.out("doctor", code=1))


def test_a_directory_that_is_not_there_is_a_problem(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = registry_of(FakeBackend("Acme"))
    skipped = type("Skipped", (), {"path": "nodir", "reason": "the path does not exist"})()
    monkeypatch.setattr(type(registry), "skipped_paths", property(lambda self: (skipped,)))
    find_backends_in(registry, monkeypatch)
    monkeypatch.setenv("ARMPY_DYNAMIC_BACKENDS_PATH", "nodir")
    assert (
        "problem: cannot look into nodir: the path does not exist. "
        "Correct ARMPY_DYNAMIC_BACKENDS_PATH, or unset it\n"
    ) in cli.out("doctor", code=1)


# One backend


class Shy(ReferenceBackend):
    def get_id(self) -> str:
        return "Shy"

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        return Nothing()


class Nothing(ILayerSupport):
    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: object
    ) -> Support:
        return Support.no(ReasonCode.DEVICE, "not today")


def trial(examination: dict[str, object]) -> list[str]:
    """What the network showed."""
    details: Any = examination["details"]
    return [text for kind, text in details if kind == "trial"]


def test_the_reference_runs_the_network() -> None:
    examination = examine_backend(ReferenceBackend())
    assert trial(examination) == ["3 of 3 layers ran on it"]
    assert examination["problem"] == ""


def test_a_refusal_is_reported_and_is_not_a_problem() -> None:
    examination = examine_backend(Shy())
    names = ("ElementwiseBinary", "Activation", "FullyConnected")
    refused = [f"{name} refused: not today (device)" for name in names]
    assert trial(examination) == ["0 of 3 layers ran on it", *refused]
    assert examination["problem"] == ""


def test_a_line_of_a_backends_diagnosis_can_be_a_problem_with_its_own_fix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fault = "the firmware is cut short. Run: acme-npu --flash"
    lines = ["driver 3", f"problem: {fault}"]
    monkeypatch.setattr(ReferenceBackend, "get_diagnosis", lambda self: lines)
    examination = examine_backend(ReferenceBackend())
    details: Any = examination["details"]
    assert ("diagnosis", "driver 3") in details
    assert (examination["problem"], examination["fix"]) == (fault, "")


# Variables


def test_the_page_of_variables_has_each_that_the_code_reads_in_order() -> None:
    places = ["armpy", "extensions/*/armpy_*", "backends/*/armpy_*"]
    files = [path for place in places for top in ROOT.glob(place) for path in top.rglob("*.py")]
    read = {
        name
        for path in files
        for name in re.findall(r'"(ARMPY_[A-Z_]*[A-Z])"', path.read_text("utf-8"))
    }
    page = (ROOT / "docs" / "reference" / "variables.md").read_text("utf-8")
    rows = re.findall(r"^\| `(ARMPY_\w+)` \|", page, re.M)
    assert rows == sorted(read | {"ARMPY_SERVING_HOST"})  # made of a prefix
