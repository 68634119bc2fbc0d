"""`armpy new-backend` writes a project that works at once."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from armpy.errors import InvalidArgumentError
from armpy_conformance.cli.new_backend.work import STYLES, BackendName, write_project
from armpy_testing.checkout import checkout_path
from armpy_testing.command_line import armpy_command
from armpy_testing.installed import skip_without
from armpy_testing.models.tflite_writer import TfliteModel

pytestmark = pytest.mark.slow

skip_without("click", "pillow", "pip", "setuptools>=77")


LONGEST = "Abcdefghij" * 3


@dataclass(frozen=True)
class Project:
    """A project in its folder, and its wheel installed in another."""

    folder: Path
    site: Path
    style: str = "workloads"

    @property
    def has_library(self) -> bool:
        """Whether the backend is a library in C or C++."""
        return self.style in ("c", "cpp")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a Python module in the folder, with the wheel on its path if that is there."""
        environment = {
            k: v
            for k, v in os.environ.items()
            if k == "ARMPY_CACHE_DIR" or not k.startswith("ARMPY_")
        }
        environment["PYTHONPATH"] = str(self.site)
        return subprocess.run(
            [sys.executable, "-m", *command],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )


def pip(*arguments: str) -> None:
    """Run pip without reaching for the network."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    options = ["--quiet", "--no-deps", "--no-index", "--no-cache-dir"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


INSTALLED_STYLES = [
    "workloads",
    pytest.param("compiler", marks=pytest.mark.nightly),
    pytest.param("engine", marks=pytest.mark.nightly),
    "c",
    pytest.param("cpp", marks=pytest.mark.nightly),
]


@pytest.fixture(scope="module", params=INSTALLED_STYLES)
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A new project of each style, built and installed."""
    compiler = {"c": "cc", "cpp": "c++"}.get(request.param)
    if compiler and shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    folder = tmp_path_factory.mktemp(request.param) / "project"
    write_project(BackendName("acme", "npu"), request.param, folder)
    wheels = folder.parent / "wheels"
    pip("wheel", "--no-build-isolation", "--wheel-dir", str(wheels), str(folder))
    (wheel,) = wheels.iterdir()
    site = folder.parent / "site"
    pip("install", "--target", str(site), str(wheel))
    return Project(folder, site, request.param)


@pytest.fixture
def float_model(tmp_path: Path) -> str:
    """A model with layers that a new backend takes, and one that it does not."""
    model = TfliteModel()
    graph = model.subgraph("main")
    tensors = [graph.tensor(name, (1, 4)) for name in ("x", "sum", "positive", "y")]
    graph.operator("ADD", [tensors[0], tensors[0]], [tensors[1]])
    graph.operator("RELU", [tensors[1]], [tensors[2]])
    graph.operator("SOFTMAX", [tensors[2]], [tensors[3]], options={"beta": 1.0})
    graph.inputs(tensors[0])
    graph.outputs(tensors[3])
    path = tmp_path / "model.tflite"
    path.write_bytes(model.to_bytes())
    return str(path)


def test_its_own_tests_pass_at_once(project: Project) -> None:
    done = project.run("pytest", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr
    number = 2 if project.has_library else 4  # its own parts are in C there
    assert re.search(rf"\b{number} passed", done.stdout)
    if project.has_library:
        assert re.search(r"AcmeNpu: \d+ passed.*; layers run on AcmeNpu: \d+", done.stdout)


@pytest.mark.parametrize(
    ("style", "compiler", "said"),
    [
        ("c", "false", "library.c did not compile: see the compiler's lines above"),
        ("cpp", "no-such-cc", "no C++ compiler 'no-such-cc': set CXX"),
    ],
)
def test_a_library_that_cannot_be_built_says_why(
    style: str, compiler: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(BackendName("acme", "npu"), style, tmp_path / "p")
    monkeypatch.setenv({"c": "CC", "cpp": "CXX"}[style], compiler)
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_py"],
        cwd=tmp_path / "p",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == said


def test_a_source_that_is_newer_than_the_library_fails_its_test(project: Project) -> None:
    if not project.has_library:
        pytest.skip("it has no library")
    source = next((project.folder / "src").rglob("library.c*"))
    before = source.stat()
    os.utime(source, (before.st_atime + 3600, before.st_mtime + 3600))
    try:
        done = project.run("pytest", "-p", "no:cacheprovider", "-k", "newer_than")
    finally:
        os.utime(source, (before.st_atime, before.st_mtime))
    assert done.returncode == 1
    assert "changed after the library was built" in done.stdout


def test_its_wheel_is_used_with_nothing_named_and_the_placement_says_so(
    project: Project, float_model: str
) -> None:
    done = project.run("armpy", "run", float_model)
    assert done.stderr == ""
    assert "\nplacement: 3 layers: AcmeNpu 2, NumbaAcc 1; 2 partitions" in done.stdout
    reason = "Softmax is not supported"
    if project.has_library:
        reason = "the operator is not Add, Mul, Relu or FullyConnected"
    elif project.style == "engine":
        reason = f"Softmax of FLOAT32 to FLOAT32: {reason}"
    assert f"Softmax x1 refused by AcmeNpu ({reason})" in done.stdout


def test_the_answers_are_the_same_with_and_without_it(project: Project, float_model: str) -> None:
    done = project.run("armpy", "diff", float_model, "--backend", "AcmeNpu")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no difference" in done.stdout


def test_the_doctor_finds_nothing_wrong_with_it(project: Project) -> None:
    done = project.run("armpy", "doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^AcmeNpu +0\.1\.0 +ok ", done.stdout, re.M)


def test_the_package_also_works_in_a_directory_of_modules(
    project: Project, float_model: str, tmp_path: Path
) -> None:
    folder = tmp_path / "modules"
    if project.has_library:
        folder.mkdir(mode=0o700)
        library = project.site / "acme_npu_backend" / "library.so"
        shutil.copy(library, folder / "Acme_Npu_backend.so")
    else:
        shutil.copytree(project.folder / "src" / "acme_npu_backend", folder / "acme_npu_backend")
    alone = Project(project.folder, tmp_path / "empty")
    done = alone.run("armpy", "run", float_model, "--dynamic-backends-path", str(folder))
    assert "\nplacement: 3 layers: AcmeNpu 2, NumbaAcc 1;" in done.stdout


@pytest.mark.sampled(4)
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("names", [("a", "b"), ("acme", "npu"), (LONGEST, LONGEST)])
def test_the_code_is_clean(style: str, names: tuple[str, str], tmp_path: Path) -> None:
    if importlib.util.find_spec("ruff") is None:
        pytest.skip("ruff is not installed")
    write_project(BackendName(*names), style, tmp_path / "p")
    clean = Project(tmp_path / "p", tmp_path)
    for command in (["check", "--no-cache"], ["format", "--check", "--no-cache"]):
        done = clean.run("ruff", *command)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.sampled(4)
@pytest.mark.parametrize("style", STYLES)
def test_the_types_are_strict(
    style: str,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    # Where armpy is installed in place, mypy does not find it by itself.
    root = checkout_path("backends").parent
    folders = [root, *(root / "backends" / name for name in ("reference", "native"))]
    folders.append(root / "extensions" / "tools")
    monkeypatch.setenv("MYPYPATH", os.pathsep.join(map(str, folders)))
    write_project(BackendName("acme", style), style, tmp_path / "p")
    cache = tmp_path_factory.getbasetemp() / "mypy"  # of armpy's own types, for both styles
    options = ("--follow-imports=silent", "--cache-dir", str(cache))
    done = Project(tmp_path / "p", tmp_path).run("mypy", *options)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("vendor", "name", "message"),
    [
        ("", "npu", "VENDOR: .*1 to 30 letters and digits of ASCII; got ''"),
        ("acme", "", "NAME: .*got ''"),
        ("ac_me", "npu", "VENDOR: .*got 'ac_me'"),
        ("acme", "n-pu", "NAME: .*got 'n-pu'"),
        ("acmé", "npu", "VENDOR: .*got 'acmé'"),
        ("../acme", "npu", "VENDOR: "),
        ("a" * 31, "npu", "VENDOR: "),
        ("3com", "npu", "VENDOR: a package cannot begin with a digit"),
        ("cpu", "ref", "the id 'CpuRef' is that of armpy's own reference"),
    ],
)
def test_a_name_that_no_module_can_have_is_refused(vendor: str, name: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        BackendName(vendor, name)


def test_names_follow_from_vendor_and_name() -> None:
    name = BackendName("ACME", "npu2")
    assert name.package == "acme_npu2_backend"
    assert name.distribution == "acme-npu2-backend"
    assert (name.backend_id, name.title) == ("ACMENpu2", "ACME Npu2")


@pytest.mark.parametrize("is_folder", [True, False])
def test_nothing_is_overwritten(is_folder: bool, tmp_path: Path) -> None:
    folder = tmp_path / "p"
    if is_folder:
        folder.mkdir()
        (folder / "notes.txt").touch()
    else:
        folder.touch()
    with pytest.raises(InvalidArgumentError, match="nothing is overwritten"):
        write_project(BackendName("acme", "npu"), "workloads", folder)


def test_the_command_says_what_to_do_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert armpy_command(["new-backend", "acme", "npu", "--style", "compiler"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "written: 14 files of the backend 'AcmeNpu' to acme-npu-backend",
        "next:",
        "  cd acme-npu-backend",
        "  pip install -e '.[test]'",
        "  pytest",
    ]
    assert armpy_command(["new-backend", "acme", "npu"]) == 2
    assert "nothing is overwritten" in capsys.readouterr().err


def test_one_call_of_pytest_takes_the_tests_of_two_projects(tmp_path: Path) -> None:
    """Test modules without packages need names of their own."""
    projects = [BackendName("acme", "npu"), BackendName("zeta", "tpu")]
    for name in projects:
        write_project(name, "workloads", tmp_path / name.distribution)
    sources = [str(tmp_path / name.distribution / "src") for name in projects]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"]
        + [f"{name.distribution}/tests" for name in projects],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sources)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_acme_npu_backend_conformance.py" in done.stdout
    assert "test_zeta_tpu_backend_conformance.py" in done.stdout
