"""`armpy doctor` on real directories and distributions, each candidate in a real process."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import struct
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from armpy_numba_acc.machine import compiler

import armpy
from armpy.backend import (
    BACKEND_API_VERSION,
    IPrograms,
    OptionValues,
    ProgramCheck,
    ProgramFit,
    SavedProgram,
)
from armpy.cli.doctor import diagnose
from armpy.cli.doctor.diagnose import (
    Diagnosis,
    Examination,
    remedy,
    sizes_of,
    unmet_requirements,
)
from armpy.cli.doctor.diagnose_backend import examine_backend
from armpy.cli.doctor.diagnose_model import operators_remedy
from armpy.cli.doctor.report import print_installation
from armpy.cli.inspect.examine_file import FileExamination, examine_file
from armpy.errors import ParserError
from armpy.model.archive.examined_programs import ProgramExamination
from armpy.plugins import BackendRegistry, Candidate, CandidateKind, CandidateStatus, PluginOptions
from armpy.plugins.extensions import install_line
from armpy.store.archive.container import write_container
from armpy_testing.backends.dynamic_modules import module_source, write_module
from armpy_testing.backends.fake_backends import FakeBackend, registry_of
from armpy_testing.backends.fake_distributions import fake_site
from armpy_testing.command_line import Cli, armpy_command
from armpy_testing.models.tflite_writer import TfliteModel
from armpy_testing.shared import shared_file
from armpy_testing.systems import NEEDS_OWNERS

for library in ("click", "rich", "PIL"):
    pytest.importorskip(library)

BROKEN = Path(__file__).parents[2] / "backends" / "dynamic_examples" / "broken"

HANG_S = 9
"""More than a sound module takes on a machine that is busy, and as long as one that hangs takes."""

CAUSES = {
    "AbortAtImport": ("crashed", r"ended by SIGABRT, at .*AbortAtImport_backend.py line \d+"),
    "DropsLayers": ("problem", "does not hold every layer of the offered view exactly once"),
    "DuplicateId": ("duplicate", "another backend has the id 'CpuRef': armpy"),
    "EmptyId": ("rejected", "'' is not a valid backend id"),
    "ExceptionAtImport": ("failed", "RuntimeError: the device does not answer"),
    "ExitAtImport": ("crashed", "its process exited with code 0"),
    "FailsToExecute": ("problem", r"OSError\('the device was removed'\)"),
    "FailsToPrepare": ("problem", r"MemoryError\('the device has no memory left'\)"),
    "HangAtImport": ("hung", rf"not finish within {HANG_S} s, at .*HangAtImport_backend.py line 9"),
    "MalformedVersion": ("rejected", "'one point oh' is not of the form major.minor"),
    "MissingDependency": ("failed", "No module named 'acme_accelerator_runtime'"),
    "MutatesInputs": ("problem", "addition failed: .*the input .* was changed by the execution"),
    "NanResults": ("problem", "addition failed: .* Expected 15 .*; got nan"),
    "NoBackendFactory": ("rejected", r"it has no backend_factory\(\)"),
    "NoGetBackendId": ("rejected", r"it has no get_backend_id\(\)"),
    "NoGetVersion": ("rejected", r"it has no get_version\(\)"),
    "NullId": ("rejected", "its get_backend_id returned None"),
    "NullInstance": ("rejected", "its backend_factory returned None"),
    "OptimizeRaises": ("problem", r"ValueError\('the compiler does not know this pattern'\)"),
    "OtherMajor": (
        "rejected",
        rf"made for API version 1.5, which does not fit {BACKEND_API_VERSION}\. The page",
    ),
    "SegfaultAtImport": ("crashed", r"ended by SIGSEGV, at .*SegfaultAtImport_backend.py line \d+"),
    "SyntaxError": ("failed", r"SyntaxError: .*line 4\)"),
    "SystemExitAtImport": ("failed", "SystemExit: usage"),
    "UnknownId": ("rejected", "'Unknown' is not a valid backend id"),
    "UnwrittenOutput": ("problem", "addition failed: .* is not written completely: 1 of 2"),
    "VersionTooNew": ("rejected", r"API version 2.999, which does not fit 2\."),
    "WrongInstance": ("rejected", "its factory made object, not an IBackendInternal"),
    "WrongResults": ("problem", "addition failed: .* Expected 15 .*; got -5"),
    "WrongTypes": ("problem", "the answer has the wrong type"),
}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of these tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARMPY_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def ward(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with everything that is broken and something good."""
    folder = tmp_path_factory.mktemp("ward")
    for path in (*BROKEN.glob("*_backend.py"), *BROKEN.glob("good/*_backend.py")):
        shutil.copy(path, folder)
        (folder / path.name).chmod(0o644)
    common = shutil.copytree(BROKEN / "Broken_common", folder / "Broken_common")
    (common / "__init__.py").chmod(0o644)
    return folder


def of(document: dict[str, Any], name: str) -> dict[str, Any]:
    """What a document says about the module or backend of a name."""
    candidates = document["candidates"]
    (entry,) = (c for c in candidates if name in (Path(c["path"]).stem, c["id"]))
    assert isinstance(entry, dict)
    return entry


@pytest.fixture(scope="module")
def visit(ward: Path) -> tuple[int, dict[str, Any]]:
    """The whole ward examined: exit code, document, duration in seconds."""
    with contextlib.redirect_stdout(io.StringIO()) as written:
        folder = ["--dynamic-backends-path", str(ward)]
        code = armpy_command(["doctor", "--json", *folder, "--probe-timeout", str(HANG_S)])
    return code, json.loads(written.getvalue())


def test_every_broken_module_has_a_known_cause() -> None:
    names = {path.stem.split("_")[1] for path in BROKEN.glob("Broken_*_backend.py")}
    assert names == set(CAUSES)


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", sorted(CAUSES))
def test_the_true_cause_is_named(name: str, visit: tuple[int, dict[str, Any]]) -> None:
    status, cause = CAUSES[name]
    entry = of(visit[1], f"Broken_{name}_backend")
    assert entry["status"] == status
    assert re.search(cause, entry["cause"]), entry["cause"]
    assert "\n" not in entry["cause"]
    assert entry["remedy"]


@pytest.mark.slow
def test_good_ones_beside_broken_ones_are_well(visit: tuple[int, dict[str, Any]]) -> None:
    code, document = visit
    assert {"CpuRef", "NumbaAcc"} <= {
        c["id"] for c in document["candidates"] if c["status"] == "ok"
    }
    # Installed packages may bring backends of devices that this machine does not have.
    well = [c["id"] for c in document["candidates"] if c["status"] in ("ok", "no device")]
    assert any(Path(c["path"]).stem.startswith("Good_") for c in document["candidates"])
    assert len(well) == len(document["candidates"]) - len(CAUSES)
    assert document["num_problems"] == len(CAUSES)
    assert code == 1


@pytest.mark.slow
def test_a_missing_module_is_named_and_no_package_is_made_up(
    visit: tuple[int, dict[str, Any]],
) -> None:
    entry = of(visit[1], "Broken_MissingDependency_backend")
    assert entry["missing"] == "module acme_accelerator_runtime"
    # Anybody can register this name on a package index.
    assert "pip install" not in entry["remedy"]
    assert "brings the module acme_accelerator_runtime" in entry["remedy"]


@pytest.mark.slow
def test_all_is_well_where_nothing_is_wrong(tmp_path: Path, cli: Cli) -> None:
    write_module(tmp_path / "m", "acme_npu_backend", module_source("AcmeNpu", extra=DECLARING))
    document = cli.document("doctor", "--dynamic-backends-path", tmp_path / "m")
    assert document["num_problems"] == 0
    entry = of(document, "AcmeNpu")
    assert (entry["status"], entry["loads"], entry["cause"]) == ("ok", True, "")
    assert entry["version"] == "7"
    assert entry["details"]["options"] == [
        {
            "name": "num_threads",
            "default": 0,
            "allowed": "a whole number of at least 0",
            "scope": "runtime",
            "help": "Threads.",
        }
    ]
    assert entry["details"]["capabilities"]["NonConstWeights"] is True
    assert [t["outcome"] for t in entry["details"]["trials"]] == ["ran", "ran", "ran"]


DECLARING = """
from armpy.backend import BackendOption

Backend.version = "7"
Backend.options = (BackendOption("num_threads", 0, "Threads.", minimum=0),)
"""

REFUSING = """
from armpy.backend import ILayerSupport, ReasonCode, Support


class Nothing(ILayerSupport):
    def is_layer_supported(self, operation, inputs, outputs):
        return Support.no(ReasonCode.DEVICE, "the device is shy")


Backend.get_layer_support = lambda self, request: Nothing()
"""


@pytest.mark.slow
def test_a_refusal_is_reported_with_its_reason_and_is_no_problem(tmp_path: Path, cli: Cli) -> None:
    write_module(tmp_path / "m", "acme_npu_backend", module_source("AcmeNpu", extra=REFUSING))
    assert "trial: addition refused: the device is shy" in cli.out(
        "doctor", "--dynamic-backends-path", str(tmp_path / "m")
    )


ABSENT = """
from armpy.errors import BackendUnavailableError


def absent(self, options):
    raise BackendUnavailableError("no device is plugged in")


Backend.create_backend_context = absent
"""


@pytest.mark.slow
def test_a_device_that_is_not_there_is_a_problem(tmp_path: Path, cli: Cli) -> None:
    write_module(tmp_path / "m", "acme_npu_backend", module_source("AcmeNpu", extra=ABSENT))
    document = cli.document("doctor", "--dynamic-backends-path", tmp_path / "m", code=1)
    entry = of(document, "AcmeNpu")
    assert entry["status"] == "problem"
    assert "no device is plugged in" in entry["cause"]


UNPLUGGED = """
from pathlib import Path

from armpy.errors import DeviceNotFoundError


def open_device(self, options):
    if not Path({device!r}).exists():
        raise DeviceNotFoundError("no NPU is plugged in", fix="Plug it in")


Backend.create_backend_context = open_device
"""


@pytest.mark.slow
def test_missing_hardware_is_one_line_and_no_problem_until_it_is_there(
    tmp_path: Path, cli: Cli
) -> None:
    device, folder = tmp_path / "device", tmp_path / "m"
    extra = UNPLUGGED.format(device=str(device))
    write_module(folder, "acme_npu_backend", module_source("AcmeNpu", extra=extra))
    where = "--dynamic-backends-path", str(folder)
    reason = "no NPU is plugged in. Plug it in"
    shown = [line for line in cli.out("doctor", *where).splitlines() if "AcmeNpu" in line]
    assert shown == [f"AcmeNpu: no device: {reason}"]
    listed = [line for line in cli.out("devices", *where).splitlines() if "AcmeNpu" in line]
    assert listed == [f"AcmeNpu cannot be used: {reason}"]
    assert cli.document("devices", *where)["unavailable"]["AcmeNpu"] == reason
    device.touch()
    assert of(cli.document("doctor", *where), "AcmeNpu")["status"] == "ok"
    assert "AcmeNpu" in [entry["backend"] for entry in cli.document("devices", *where)["devices"]]


@pytest.mark.slow
def test_distributions_are_examined_too(tmp_path: Path, cli: Cli) -> None:
    with fake_site(tmp_path) as site:
        site.install_backend("Acme", version="2.5")
        site.install("bad-backend", {"Bad": "bad_backend:Backend"}, source="import yaml.nothing")
        document = cli.document("doctor", code=1)
    assert of(document, "Acme")["status"] == "ok"
    assert of(document, "Bad")["remedy"].startswith("Run: pip install ")


@pytest.mark.slow
def test_a_directory_that_is_not_there_is_a_problem(cli: Cli) -> None:
    document = cli.document("doctor", "--dynamic-backends-path", "/nowhere/at/all", code=1)
    assert document["bad_directories"] == [
        {"path": "/nowhere/at/all", "reason": "the path does not exist"}
    ]
    assert document["directories_fix"] == "Correct --dynamic-backends-path, or leave it out"


@pytest.mark.slow
def test_a_directory_that_is_not_there_is_named_with_the_variable(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARMPY_DYNAMIC_BACKENDS_PATH", "nodir")
    assert (
        "problem: cannot look into nodir: the path does not exist. "
        "Correct ARMPY_DYNAMIC_BACKENDS_PATH, or unset it\n"
    ) in cli.out("doctor", code=1)


@pytest.mark.slow
def test_a_file_that_is_named_wrongly_is_shown_and_is_no_problem(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "backend.py").write_text("")
    assert f"skipped {tmp_path / 'backend.py'}: its name" in cli.out(
        "doctor", "--dynamic-backends-path", str(tmp_path)
    )


@pytest.mark.slow
def test_tracebacks_are_shown_when_asked_for(tmp_path: Path, cli: Cli) -> None:
    write_module(tmp_path / "m", "acme_npu_backend", "1 / 0")
    arguments = ["doctor", "--dynamic-backends-path", str(tmp_path / "m")]
    out = cli.out(*arguments, code=1)
    assert "Traceback" not in out
    *_, problem, count = out.splitlines()
    assert problem.startswith("problem: acme_npu_backend: ZeroDivisionError: ")
    assert "Report it to its author" in problem
    assert count.endswith(", problems: 1")
    assert "  | Traceback (most recent call last):" in cli.out(*arguments, "--debug", code=1)


@pytest.mark.slow
def test_the_environment_in_force_is_printed(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust = tmp_path / "trust.toml"
    trust.write_text('allow = ["CpuRef"]\n')
    trust.chmod(0o600)
    monkeypatch.setenv("ARMPY_TRUST_FILE", str(trust))
    monkeypatch.setenv("ARMPY_DYNAMIC_BACKENDS_PATH", str(tmp_path))
    monkeypatch.setenv("ARMPY_MODEL_CACHE", "off")
    monkeypatch.setenv("ARMPY_THREADS", "4")
    monkeypatch.setenv("ARMPY_SERVING_PORT", "9000")
    document = json.loads(cli("doctor", "--json")[1])
    facts = document["facts"]
    assert facts["armpy"] == f"{armpy.__version__} in {Path(armpy.__file__).parent}"
    assert "; with ARMPY_MODEL_CACHE=off, whole models are not kept" in facts["cache"]
    assert facts["trust file"] == str(trust)
    assert facts["directories"] == str(tmp_path)
    environment = facts["environment"].split(", ")
    assert f"ARMPY_TRUST_FILE={trust}" in environment
    assert "ARMPY_SERVING_PORT=9000" in environment
    assert "ARMPY_THREADS=4 (no variable of armpy)" in environment
    assert "files: " in facts["isolated backends"]
    assert "network: " in facts["isolated backends"]


def candidate(**fields: Any) -> Candidate:
    """A candidate that could not be loaded."""
    return Candidate("Acme", "x", CandidateKind.DIRECTORY, status=CandidateStatus.FAILED, **fields)


@pytest.mark.parametrize(
    ("missing", "text"),
    [
        ("cv2", "Run: pip install opencv-python"),
        ("sklearn.svm", "Run: pip install scikit-learn"),
        ("acme", "Install the package that brings the module acme:"),
        ("acme.deep.module", "Install the package that brings the module acme:"),
        ("armpyy.backend", "Did you mean armpy? If not, install the package that brings the mod"),
        ("nunpy", "Did you mean numpy? If not, install the package that brings the module nunpy:"),
        ("numpy.nothing", "Run: pip install --upgrade numpy (it is installed, but has no"),
    ],
)
def test_the_remedy_for_a_missing_module_is_what_brings_it(missing: str, text: str) -> None:
    assert remedy(candidate(missing_module=missing), is_sick=False).startswith(text)


def test_requirements_vouch_for_names_and_own_modules_have_none(tmp_path: Path) -> None:
    with fake_site(tmp_path) as site:
        metadata = (
            "Metadata-Version: 2.1\nName: acme-npu\nVersion: 1.0\nRequires-Dist: acme-SDK>=2\n"
        )
        site.install("acme-npu", {"Acme": "acme_npu.backend:Backend"}, metadata=metadata)

        def of_wheel(missing: str) -> str:
            wheel = Candidate(
                "Acme",
                "acme-npu 1.0",
                CandidateKind.ENTRY_POINT,
                name="acme_npu.backend:Backend",
                distribution="acme-npu",
                missing_module=missing,
            )
            return remedy(wheel, is_sick=False)

        assert of_wheel("acme_sdk") == "Run: pip install acme-SDK"
        assert of_wheel("acme_other").startswith("Install the package that brings the module")
        for own in ("acme_npu", "acme_npu.backend", "acme_npu.native"):
            text = of_wheel(own)
            assert text.startswith("Install the distribution acme-npu again")
            assert "pip install" not in text


def test_a_cause_that_names_a_command_is_the_remedy() -> None:
    cause = "addition failed: gave it back: no compiler: pip install numba"
    sick = Candidate("Acme", "x", CandidateKind.CODE)
    assert remedy(sick, is_sick=True, cause=cause) == "Run: pip install numba"
    assert remedy(sick, is_sick=True, cause="wrong answers").startswith("Report it")


@pytest.mark.parametrize(
    ("fields", "is_sick", "text"),
    [
        (
            {"kind": CandidateKind.ENTRY_POINT, "distribution": "acme-npu"},
            False,
            "armpy goes on without it; to have it looked for no more, run pip uninstall acme-npu",
        ),
        (
            {"kind": CandidateKind.DIRECTORY, "directory": "/m", "path": "/m/Acme_Npu_backend.py"},
            False,
            "to have it looked for no more, remove /m/Acme_Npu_backend.py, or leave /m out of "
            "--dynamic-backends-path and ARMPY_DYNAMIC_BACKENDS_PATH",
        ),
        (
            {"kind": CandidateKind.ENTRY_POINT, "distribution": "acme-npu"},
            True,
            "To go on without it, name others with --backends, or run pip uninstall acme-npu",
        ),
        (
            {"kind": CandidateKind.ENTRY_POINT, "distribution": "acme", "is_plugin": True},
            True,
            "To go on without it, run pip uninstall acme",
        ),
    ],
)
def test_where_only_an_author_can_mend_it_the_way_on_is_named(
    fields: dict[str, Any], is_sick: bool, text: str
) -> None:
    broken = Candidate("Acme", "x", status=CandidateStatus.FAILED, reason="oops", **fields)
    fix = remedy(broken, is_sick=is_sick, cause="oops")
    assert fix.startswith("Report it to its author")
    assert fix.endswith(text)


@pytest.mark.slow
@pytest.mark.parametrize("below", ["", "armpy"])
def test_a_file_in_the_place_of_the_cache_is_a_problem(
    below: str, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "file" / below))
    line = (
        f"cache: {tmp_path / 'file'} is a file and not a folder: each start compiles anew. "
        "Remove the file, or set ARMPY_CACHE_DIR to a folder"
    )
    assert line in cli.out("doctor", code=1)
    monkeypatch.setenv("ARMPY_COMPILED_CACHE", "off")
    assert "is a file" not in cli.out("doctor")


def test_files_that_vanish_while_the_cache_is_measured_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"12345")
    paths = [str(tmp_path / "gone"), str(tmp_path / "kept")]
    assert list(sizes_of(paths)) == [5]


def test_the_remedy_for_a_missing_library_names_it() -> None:
    assert "libacme.so.2" in remedy(candidate(missing_library="libacme.so.2"), is_sick=False)


@pytest.mark.parametrize("module", ["click", "rich", "llvmlite.binding"])
def test_armpys_own_libraries_are_installed_by_their_names(module: str) -> None:
    fix = remedy(candidate(missing_module=module), is_sick=False)
    assert fix.startswith("Run: pip install ")
    assert module.partition(".")[0] in fix


def test_a_library_of_an_installed_package_is_installed_with_it_again() -> None:
    library = os.path.normpath("/env/site-packages/numpy/_core/libmissing.so")
    assert remedy(candidate(missing_library=library), is_sick=False) == (
        "Run: pip install --force-reinstall numpy"
    )


def test_a_variable_that_a_cause_names_is_to_be_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    sick = Candidate("Acme", "x", CandidateKind.CODE)
    cause = "ARMPY_NUMBA_ISA: there is no instruction set 'foo'"
    assert "author" in remedy(sick, is_sick=True, cause=cause)
    monkeypatch.setenv("ARMPY_NUMBA_ISA", "foo")
    assert remedy(sick, is_sick=True, cause=cause) == (
        "Correct the environment variable ARMPY_NUMBA_ISA, or unset it"
    )


def test_requirements_that_are_not_met_are_named_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "acme_tools-1.0.dist-info"
    info.mkdir()
    needs = ["numpy<1", "acme-lost>=2", "acme-other; extra == 'more'", "pluggy"]
    lines = ["Metadata-Version: 2.1", "Name: acme-tools", "Version: 1.0"]
    text = "\n".join([*lines, *(f"Requires-Dist: {need}" for need in needs)])
    (info / "METADATA").write_text(text + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    low, lost = unmet_requirements(["acme-tools", "acme-not-there"])
    assert low.startswith("acme-tools needs numpy<1, and ")
    assert low.endswith(" is installed. Run: pip install 'numpy<1'")
    assert lost == (
        "acme-tools needs acme-lost>=2, and it is not installed. Run: pip install 'acme-lost>=2'"
    )


def test_what_requirements_need_themselves_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, need in (
        ("acme-tools", "acme-format"),
        ("acme-format", "acme-wire>=6"),
    ):
        info = tmp_path / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0"]
        lines += [f"Requires-Dist: {need}", "Requires-Dist: old-form (>dev)"]
        (info / "METADATA").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert list(unmet_requirements(["acme-tools"])) == [
        "acme-format needs acme-wire>=6, and it is not installed. Run: pip install 'acme-wire>=6'"
    ]


def test_armpys_own_distributions_are_installed_from_where_armpy_came_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def installed(name: str) -> str:
        if name == "armpy-conformance":
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(diagnose, "version", installed)
    monkeypatch.setattr(diagnose, "requires", {"armpy-tools": ["armpy-conformance==0.1.0"]}.get)
    (unmet,) = unmet_requirements(["armpy-tools"])
    assert unmet == (
        "armpy-tools needs armpy-conformance==0.1.0, and it is not installed. "
        f"Run: {install_line('armpy-conformance')}"
    )


def test_a_line_of_a_backends_diagnosis_can_be_a_problem_with_its_own_fix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fault = "the firmware is cut short. Run: acme-npu --flash"
    monkeypatch.setattr(
        FakeBackend, "get_diagnosis", lambda self: ["driver 3", f"problem: {fault}"]
    )
    details = examine_backend(FakeBackend("Acme"))
    assert details["diagnosis"] == ["driver 3"]
    assert isinstance(details["problems"], list)
    assert fault in details["problems"]
    sick = Candidate("Acme", "x", CandidateKind.CODE)
    assert remedy(sick, is_sick=True, cause=fault) == ""


@pytest.mark.parametrize("missing", ["numba", "llvmlite"])
def test_a_missing_compiler_has_one_command_which_brings_the_fitting_version(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def installed(name: str) -> str:
        if name == missing:
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(diagnose, "version", installed)
    monkeypatch.setattr(compiler, "find_spec", lambda name: None if name == missing else True)
    (unmet,) = unmet_requirements(["armpy", "numba"])
    # llvmlite alone may come newer than Numba takes.
    assert unmet.endswith(", and it is not installed. Run: pip install numba")
    assert compiler.missing_compiler.__wrapped__() == "no compiler: pip install numba"
    facts = diagnose._facts(PluginOptions(), is_writable=True)
    assert f"{missing} missing (for compiling kernels), " in facts["libraries"]


# What `armpy doctor` says of compiled models


MODEL = str(Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite")


class ProgramsByName(IPrograms):
    """Takes programs as they say themselves that they are to be taken."""

    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        return None

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        fit = ProgramFit(about["fit"])
        return ProgramCheck(fit, "" if fit is ProgramFit.ACCEPTED else "so it says")

    def load(self, saved: SavedProgram) -> object:
        raise AssertionError("a doctor runs nothing")


class Preparing(FakeBackend):
    def get_programs(self) -> IPrograms:
        return ProgramsByName()


@pytest.fixture
def registry() -> BackendRegistry:
    return registry_of(Preparing("A"), FakeBackend("B"))


def program(backend_id: str, fit: object, digest: str = "0", target: str = "host") -> object:
    """A record of a program in a manifest."""
    about = {"fit": fit} if isinstance(fit, str) else fit
    parts = {"code": "code", "tables": "tables"}
    return {
        "backend": backend_id,
        "digest": digest,
        "target": target,
        "about": about,
        "parts": parts,
    }


def write(folder: Path, *programs: object) -> Path:
    path = folder / "model.armpy"
    manifest = {"kind": "model", "armpy": "0.0.1", "title": "toy", "programs": list(programs)}
    write_container(path, manifest, {"code": b"code" * 8, "tables": b"tables"})
    return path


def status_and_reasons(found: FileExamination) -> list[tuple[str, str]]:
    return [(examined.status, examined.reason) for examined in found.programs]


def test_a_program_that_is_taken_is_used(tmp_path: Path, registry: BackendRegistry) -> None:
    examination = examine_file(write(tmp_path, program("A", "accepted")), registry)
    assert examination.programs == (ProgramExamination("A", "host", "used", "", 32 + 6),)
    assert examination.facts["model"] == "toy"
    assert examination.facts["armpy"].startswith("0.0.1, here ")
    assert examination.trust == "no other user can write where it lies (it is not signed)"
    assert (examination.is_ok, examination.unprepared, examination.remedy, examination.damage) == (
        True,
        0,
        "",
        "",
    )


def test_a_program_that_is_not_taken_says_why(tmp_path: Path, registry: BackendRegistry) -> None:
    records = [program("A", "needs rebuild", "0"), program("A", "foreign", "1")]
    examination = examine_file(write(tmp_path, *records), registry)
    assert status_and_reasons(examination) == [
        ("needs rebuild", "so it says"),
        ("foreign", "so it says"),
    ]
    assert (examination.is_ok, examination.unprepared) == (False, 2)
    assert examination.remedy == "Prepare the model for this machine: armpy compile"


def test_the_first_program_of_the_same_layers_is_used(
    tmp_path: Path, registry: BackendRegistry
) -> None:
    records = [program("A", fit) for fit in ("foreign", "accepted", "accepted")]
    examination = examine_file(write(tmp_path, *records), registry)
    assert status_and_reasons(examination) == [
        ("foreign", "so it says"),
        ("used", ""),
        ("not used", "another one of the same layers comes before it"),
    ]
    assert (examination.is_ok, examination.unprepared) == (True, 0)


def test_missing_backends_and_those_without_programs_are_reported(
    tmp_path: Path, registry: BackendRegistry
) -> None:
    records = [program("B", "accepted"), program("Absent", "accepted"), program("A", None)]
    examination = examine_file(write(tmp_path, *records), registry)
    (b, absent, unclear) = status_and_reasons(examination)
    assert b == ("needs rebuild", "the backend takes no programs from files")
    assert absent[0] == "foreign"
    assert "Absent" in absent[1]
    assert unclear == ("foreign", "the file's description of it cannot be understood")
    assert examination.unprepared == 3


def test_a_check_that_fails_is_reported(tmp_path: Path, registry: BackendRegistry) -> None:
    examination = examine_file(write(tmp_path, program("A", {"fit": "??"})), registry)
    ((status, reason),) = status_and_reasons(examination)
    assert status == "foreign"
    assert "A / check" in reason


@NEEDS_OWNERS
@pytest.mark.parametrize("code", ["trusted", "signed", "never"])
def test_programs_of_a_file_whose_code_may_not_be_used_are_not(
    code: str, tmp_path: Path, registry: BackendRegistry
) -> None:
    path = write(tmp_path, program("A", "accepted"))
    path.chmod(0o666)
    examination = examine_file(path, registry, (), code)
    assert status_and_reasons(examination) == [("not used", examination.trust)]
    assert (examination.uses_code, examination.is_refused) == (False, code != "never")
    assert examination.is_ok == (code == "never")
    assert ("code='never'" in examination.remedy) == (code != "never")


def test_damage_is_reported_and_nothing_is_used(tmp_path: Path, registry: BackendRegistry) -> None:
    path = write(tmp_path, program("A", "accepted"))
    path.write_bytes(path.read_bytes().replace(b"codecode", b"coDecode", 1))
    examination = examine_file(path, registry)
    assert "the checksum of section 'code' is wrong" in examination.damage
    assert status_and_reasons(examination) == [("not used", examination.damage)]
    assert not examination.is_ok


@pytest.mark.parametrize("programs", [None, "text", [3, None]])
def test_programs_that_cannot_be_read_are_no_programs(
    programs: object, tmp_path: Path, registry: BackendRegistry
) -> None:
    path = tmp_path / "model.armpy"
    write_container(path, {"programs": programs}, {})
    examination = examine_file(path, registry)
    assert examination.programs == ()
    assert examination.facts["model"] == "unnamed"


def test_a_model_file_is_read_and_its_faults_are_named(tmp_path: Path, cli: Cli) -> None:
    assert "contents: sound" in cli.out("doctor", MODEL)
    assert cli.document("doctor", MODEL)["is_ok"] is True
    cut, text = tmp_path / "cut.tflite", tmp_path / "text.tflite"
    cut.write_bytes(Path(MODEL).read_bytes()[:1500])
    text.write_text("no model")
    assert "the file is damaged or cut short" in cli.out("doctor", str(cut), code=1)
    assert f"contents: {text}: " in cli.out("doctor", str(text), code=1)


@pytest.mark.parametrize("is_used", [True, False], ids=["used weights", "spare weights"])
def test_weights_after_the_model_that_are_cut_are_named(
    tmp_path: Path, cli: Cli, is_used: bool
) -> None:
    model = TfliteModel()
    graph = model.subgraph()
    x, y = graph.tensor("x", (4,)), graph.tensor("y", (4,))
    data = struct.pack("4f", 1, 2, 3, 4)
    weights = graph.tensor("w", (4,), buffer=model.buffer(data, external=True))
    graph.tensor("spare", (4,), buffer=model.buffer(data, external=True))
    graph.operator("ADD", [x, weights if is_used else x], [y])
    graph.inputs(x)
    graph.outputs(y)
    path = tmp_path / "cut.tflite"
    path.write_bytes(model.to_bytes())
    assert "contents: sound" in cli.out("doctor", str(path))
    path.write_bytes(model.to_bytes()[: -20 if is_used else -1])
    said = cli.out("doctor", str(path), code=1)
    assert "the file is damaged: data lies past its end" in said


def test_where_layers_run_and_what_was_compiled_is_told(cli: Cli) -> None:
    document = cli.document("doctor", MODEL)
    assert document["facts"]["layers"] == "10"
    assert document["facts"]["placement"].startswith("10 layers: NumbaAcc 10;")
    assert document["first_start"]
    assert all(
        re.search(r"^NumbaAcc: .*: (found|compiled)", text) for text in document["first_start"]
    )
    assert (document["missing_operators"], document["open_inputs"]) == ({}, [])


def test_a_missing_operator_is_named_with_the_extension_that_has_it(
    cli: Cli, tmp_path: Path
) -> None:
    model = TfliteModel()
    graph = model.subgraph()
    words, pairs = (graph.tensor(name, (1,), "STRING") for name in ("words", "pairs"))
    graph.operator("SKIP_GRAM", [words], [pairs], {"ngram_size": 2})
    graph.inputs(words)
    graph.outputs(pairs)
    path = tmp_path / "pairs.tflite"
    path.write_bytes(model.to_bytes())
    document = cli.document("doctor", str(path), code=1)
    assert document["missing_operators"] == {"SKIP_GRAM": 1}
    assert document["remedy"].startswith("Export the model without these operators")
    out = cli.out("doctor", str(path), code=1)
    assert "armpy does not have the operator: SKIP_GRAM x1" in out
    assert operators_remedy(["TransformLandmarks"]).startswith(
        "Install armpy-mediapipe: pip install"
    )


def test_open_shapes_are_told_with_the_command_that_goes_on(cli: Cli) -> None:
    pytest.importorskip("armpy_onnx")
    path = shared_file("models", "onnx", "silero_vad_16k_op15.onnx")
    out = cli.out("doctor", path)
    assert "input whose shape is open: input (?, ?)" in out
    assert (
        "to do: Give the open shapes to see where layers would run: "
        "armpy inspect --shape input=SIZES --shape state=SIZES FILE"
    ) in out


def test_a_file_of_another_kind_is_an_error(registry: BackendRegistry) -> None:
    with pytest.raises(ParserError, match="it is not a compiled model"):
        examine_file(MODEL, registry)


def test_the_command_says_it_to_people_and_programs(tmp_path: Path, cli: Cli) -> None:
    path = write(tmp_path, program("Absent", "accepted"))
    out = cli.out("doctor", str(path), code=1)
    assert "code: used: no other user can write where it lies (it is not signed)" in out
    assert "program of Absent for host, 38 bytes: foreign: " in out
    assert "parts to be prepared anew: 1" in out
    document = cli.document("doctor", str(path), code=1)
    assert document["is_ok"] is False
    assert document["programs"][0]["status"] == "foreign"
    assert "code: refused, and the file with it: it is not signed" in cli.out(
        "doctor", str(path), "--code", "signed", code=1
    )
    assert armpy_command(["doctor", str(path), "--code", "never"]) == 0


def well(name: str, **details: Any) -> Diagnosis:
    return Diagnosis(
        name, name, "code", "here 1.0", "", "ok", True, "", "", "", "1.0", "", "", details
    )


def printed(capsys: pytest.CaptureFixture[str], *, in_full: bool) -> list[str]:
    """Lines that are printed about a backend and two plugins that are well."""
    capabilities = {f"Capability{number}": True for number in range(20)}
    hooks = {"hooks": ["armpy_add_cli_commands"], "commands": ["toy"]}
    facts = {"extensions": "x" * 300, "cache": "y" * 300}
    examination = Examination(
        facts,
        (well("Acme", capabilities=capabilities),),
        (well("toy", **hooks), well("other", **hooks)),
        (),
        (),
        "",
        "",
        (),
        (),
    )
    print_installation(examination, with_tracebacks=False, in_full=in_full)
    return capsys.readouterr().out.splitlines()


def test_what_is_well_is_cut_to_the_width_unless_all_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = printed(capsys, in_full=False)
    cut = [line for line in lines if line.endswith(" ... (-v: all)")]
    assert [line.split(":")[0].strip() for line in cut] == ["extensions", "capabilities"]
    assert max(map(len, cut)) <= 100
    assert f"cache: {'y' * 300}" in lines  # it is not known to be well
    at = lines.index("plugin toy 1.0: ok")
    assert lines[at - 1 : at + 4] == [
        "",
        "plugin toy 1.0: ok",
        "  commands: toy",
        "plugin other 1.0: ok",
        "  commands: toy",
    ]
    every = printed(capsys, in_full=True)
    assert not [line for line in every if "-v: all" in line]
    assert any(line.endswith("Capability18, Capability19") for line in every)
    assert f"extensions: {'x' * 300}" in every
    assert every.count("  hooks: armpy_add_cli_commands") == 2


@pytest.mark.slow
def test_the_doctor_prints_all_with_v(cli: Cli) -> None:
    assert " ... (-v: all)" in cli.out("doctor")
    assert " ... (-v: all)" not in cli.out("doctor", "-v")
