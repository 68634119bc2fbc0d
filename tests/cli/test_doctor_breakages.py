"""`armpy doctor` names breakages that are planted here, ends with status 1, and says what to do.

What is wrong with backends and plugins is planted by `test_doctor` and `test_plugins`.
"""

from __future__ import annotations

import gzip
import os
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import armpy
from armpy.cli.settings import VARIABLES
from armpy.model.archive import model_cache
from armpy.model.archive.kept_models import ModelCache
from armpy.model.archive.model_cache import SUFFIX
from armpy_testing.backends.dynamic_modules import write_module
from armpy_testing.backends.fake_backends import FakeBackend, registry_of
from armpy_testing.backends.fake_distributions import fake_site
from armpy_testing.command_line import Cli, find_backends_in
from armpy_testing.models.tflite_writer import TfliteModel
from armpy_testing.systems import NEEDS_OWNERS
from tests.support.pages import ROOT

for library in ("click", "rich", "PIL"):
    pytest.importorskip(library)

MODEL = ROOT / "examples" / "digits" / "digits_int8.tflite"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of each test's own."""
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def installation(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command, for which only one backend is installed, so that nothing has to be probed."""
    find_backends_in(registry_of(FakeBackend("Acme")), monkeypatch)
    return cli


def run_doctor(
    preparation: str, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`armpy doctor` in a process of its own, after some Python."""
    code = f"{preparation}\nimport sys\nfrom armpy.cli.__main__ import main\n"
    return subprocess.run(
        [sys.executable, "-c", f"{code}sys.exit(main(['doctor']))"],
        capture_output=True,
        text=True,
        check=False,
        env=variables,
    )


# Libraries


@pytest.mark.parametrize("name", ["numpy", "pluggy", "packaging"])
def test_a_missing_library_of_the_core_is_named_by_the_standard_library_alone(name: str) -> None:
    done = run_doctor(f"import sys; sys.modules['{name}'] = None")
    assert (done.returncode, done.stderr) == (1, "")
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("problem: "))
    assert line.startswith(f"problem: armpy needs {name}, which cannot be imported: ")
    assert re.search(rf"Run: pip install (--force-reinstall )?'{name}(>=[\d.]+)?'$", line)
    assert "problems: 1" in done.stdout


def test_without_pillow_all_but_pictures_works_so_that_it_is_no_problem(
    installation: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def installed(name: str) -> str:
        if name == "pillow":
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr("armpy.cli.doctor.diagnose.version", installed)
    out = installation.out("doctor", code=0)
    assert "pillow missing (optional, for reading pictures): pip install pillow" in out


def test_a_library_built_for_another_python_is_named(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text(
        "raise ImportError('Error importing numpy:\\n  it was built for CPython 3.9')"
    )
    variables = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    }
    done = run_doctor("", variables)
    assert done.returncode == 1
    assert "Error importing numpy: it was built for CPython 3.9. Run: pip install" in done.stdout


def test_another_command_without_numpy_leads_to_the_doctor() -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-c"),
            "import sys; sys.modules['numpy'] = None; from armpy.cli.__main__ import main; "
            f"sys.exit(main(['inspect', {str(MODEL)!r}]))",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.endswith("Run: armpy doctor, which says what to install\n")


def test_two_versions_of_armpy_are_named(installation: Cli, tmp_path: Path) -> None:
    with fake_site(tmp_path) as site:
        site.install("armpy-old", {})
        info = tmp_path / "armpy-0.0.7.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: armpy\nVersion: 0.0.7\n")
        out = installation.out("doctor", code=1)
    assert "problem: armpy is installed in several versions: 0.0.7 in " in out
    assert "Run: pip uninstall armpy, until it finds none, and install it again" in out


@pytest.mark.slow
def test_an_extension_module_of_another_python_is_named(cli: Cli, tmp_path: Path) -> None:
    with fake_site(tmp_path) as site:
        site.install(
            "acme-npu",
            {"Acme": "acme_npu:Backend"},
            source="from acme_npu import _driver\nimport acme_npu._driver",
            parts={"other": ""},
        )
        built = tmp_path / "acme_npu" / "_driver.cpython-39-x86_64-linux-gnu.so"
        built.write_bytes(b"\x7fELF")
        (tmp_path / "acme_npu" / "__init__.py").write_text("import acme_npu._driver\n")
        document = cli.document("doctor", code=1)
    (entry,) = (c for c in document["candidates"] if c["id"] == "Acme")
    assert entry["remedy"] == (
        "Install the distribution acme-npu again from where you have it, for this Python: "
        f"{built} was built for another"
    )


# What kernels come from


@pytest.mark.slow
def test_kernels_and_the_instruction_set_are_described(cli: Cli) -> None:
    out = cli.out("doctor")
    assert re.search(r"^  compiler: Numba and LLVM$", out, re.M)
    assert re.search(r"^  instruction set: \w", out, re.M)
    assert re.search(r"^  (pack: .*\.kernels: used|no pack is used: )", out, re.M)
    cached = r"^  cache: \d+ compiled kernels?; loops that kernels share, as bitcode: \d+$"
    assert re.search(cached, out, re.M)


@pytest.mark.slow
def test_a_damaged_pack_is_named_with_what_it_costs(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = tmp_path / "damaged.kernels"
    damaged.write_bytes(b"no pack")
    monkeypatch.setenv("ARMPY_KERNELS", str(damaged))
    code, out, _ = cli("doctor")
    assert code == 1
    assert f"problem: kernels are not taken from {damaged}: " in out


# Environment variables


def test_every_variable_that_the_code_reads_is_known() -> None:
    places = ["armpy", "extensions/*/armpy_*", "backends/*/armpy_*"]
    files = [path for place in places for top in ROOT.glob(place) for path in top.rglob("*.py")]
    read = {
        name
        for path in files
        if "doctor" not in path.parts
        for name in re.findall(r'"(ARMPY_[A-Z_]*[A-Z])"', path.read_text("utf-8"))
    }
    assert read | {"ARMPY_SERVING_HOST"} == set(VARIABLES)  # made of a prefix


def test_the_page_of_variables_has_a_row_for_each_in_order() -> None:
    page = (ROOT / "docs" / "reference" / "variables.md").read_text("utf-8")
    assert tuple(re.findall(r"^\| `(ARMPY_\w+)` \|", page, re.M)) == VARIABLES


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("ARMPY_CACHE_DIRR", "/x", "has no effect. Rename it to ARMPY_CACHE_DIR, or unset it"),
        ("ARMPY_CACHEDIR", "/x", "has no effect. Rename it to ARMPY_CACHE_DIR, or unset it"),
        ("ARMPY_BACKEND", "CpuRef", "has no effect. Rename it to ARMPY_BACKENDS, or unset it"),
        ("ARMPY_BACKENDS", "Foo", "names the backend 'Foo', which was not found among Acme. "),
        ("ARMPY_BACKENDS", "Acme Foo", "among Acme. Separate ids by commas: 'Acme,Foo'. Correct"),
        ("ARMPY_BACKENDS", "Amce", "among Acme. Did you mean 'Acme'? Correct"),
        ("ARMPY_COMPILED_CACHE", "of", "the switch cannot have this value. Expected on or off"),
        ("ARMPY_COMPILED_CACHE_MB", "1 GB", "the limit is not a number of MiB"),
        ("ARMPY_MODEL_CACHE", "yes", "ARMPY_MODEL_CACHE is 'yes', not on or off"),
        ("ARMPY_VLOG", "models", "ARMPY_VLOG has no tag 'models', only model, compilation, "),
        ("ARMPY_SYSTEM_TRACE", "mark", "ARMPY_SYSTEM_TRACE has no tag 'mark', only marks, perf, "),
        ("ARMPY_KERNELS", "/nowhere", "kernels are not taken from /nowhere: it cannot be read"),
    ],
)
def test_a_variable_that_is_wrong_is_named(
    name: str, value: str, text: str, installation: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "problem: ARMPY" not in installation("doctor")[1]
    monkeypatch.setenv(name, value)
    code, out, _ = installation("doctor")
    assert code == 1
    (line,) = (line for line in out.splitlines() if text in line)
    assert line.startswith("problem: ")
    assert name in line
    assert "unset it" in line
    others = installation("backends")[2]
    assert f"warning: {name} {text}" in others or "has no effect" not in text
    monkeypatch.delenv(name)
    assert "has no effect" not in installation("backends")[2]
    if renamed := re.search(r"Rename it to (\w+), or unset it", line):
        assert installation("doctor")[0] == 0
        monkeypatch.setenv(renamed[1], value)
    assert f"{name} " not in installation("doctor")[1]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("ARMPY_MODEL_CACHE", "false", "is 'false', not on or off. Set it to one of these, or"),
        ("ARMPY_COMPILED_CACHE", "0", "is '0', not on or off. Set it"),
        ("ARMPY_NUMBA_CACHE", "no", "is 'no', not on or off. Set it"),
        ("ARMPY_COMPILED_CACHE_MB", "1 GB", "is '1 GB', not a number of MiB. Set it"),
        ("ARMPY_NUMBA_CACHE_MB", "lots", "is 'lots', not a number of MiB. Set it"),
        ("ARMPY_MODEL_CACHE", "Off", ""),
        ("ARMPY_NUMBA_CACHE_MB", "10", ""),
    ],
)
def test_every_command_warns_of_wrong_values_of_caches(
    name: str, value: str, text: str, installation: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    warning = installation("keys", "show", "nowhere")[2].partition("armpy: error:")[0]
    assert f"armpy: warning: {name} {text}" in warning if text else warning == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["ARMPY_NUMBA_ISA", "ARMPY_NUMBA_MACHINE", "ARMPY_NUMBA_CACHE", "ARMPY_NUMBA_CACHE_MB"]
)
def test_a_wrong_variable_of_a_backend_is_named(
    name: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "foo")
    document = cli.document("doctor", code=1)
    (entry,) = (c for c in document["candidates"] if c["id"] == "NumbaAcc")
    assert entry["remedy"] == f"Correct the environment variable {name}, or unset it"


def test_a_trust_file_that_is_missing_is_named(
    installation: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("ARMPY_TRUST_FILE", "/nowhere.toml")
    error = installation.err("doctor")
    assert "/nowhere.toml: the trust file cannot be read: No such file" in error
    assert "Correct ARMPY_TRUST_FILE, or unset it" in error
    monkeypatch.delenv("ARMPY_TRUST_FILE")
    find_backends_in(registry_of(FakeBackend("Acme")), monkeypatch)
    installation.out("doctor")


# The cache


@NEEDS_OWNERS
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no file system of that kind")
def test_a_home_that_cannot_be_written_is_named(
    installation: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ARMPY_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/proc/nowhere")
    out = installation.out("doctor", code=1)
    assert "cache: /proc/nowhere/.cache/armpy, not writable, " in out
    assert (
        "cannot be written: No such file or directory: each start compiles anew. Make it writable, "
        "or set ARMPY_CACHE_DIR to another folder"
    ) in out
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "another"))
    installation.out("doctor")


def test_no_home_is_named(
    installation: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ARMPY_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)  # Windows' folder
    monkeypatch.setattr("armpy.core.file_ownership.os.path.expanduser", lambda path: path)
    assert (
        "cache: nothing is kept: the user has no home directory. Set ARMPY_CACHE_DIR to a folder"
    ) in installation.out("doctor", code=1)
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "another"))
    installation.out("doctor")


def test_damaged_files_of_the_model_cache_are_counted(
    installation: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path))
    checks = "; armpy cache list shows more, armpy cache verify checks all of it"

    def cache_line() -> str:
        lines = installation.out("doctor").splitlines()
        return next(line for line in lines if line.startswith("cache: "))

    assert cache_line().endswith(checks)
    assert "damaged file" not in cache_line()
    folder = Path(ModelCache().location)
    folder.mkdir()
    for name, text in (("first", "1 damaged file"), ("second", "2 damaged files")):
        (folder / f"{name}{SUFFIX}").write_bytes(b"cut off")
        assert ", 0 models" in cache_line()
        assert cache_line().endswith(f"; {text}, to be made again when needed{checks}")


@NEEDS_OWNERS
@pytest.mark.parametrize("exposed", ["cache", "cache/models"])
def test_a_cache_that_others_can_write_to_is_a_problem_until_the_remedy_was_run(
    installation: Cli, tmp_path: Path, exposed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(model_cache.VARIABLE, "on")
    (tmp_path / "cache" / "models").mkdir(parents=True, mode=0o755)
    installation.out("doctor")
    (tmp_path / exposed).chmod(0o777)
    out = installation.out("doctor", code=1)
    text = (
        f"whole models are not kept: its directory {tmp_path / exposed} can be written by "
        "everybody; run: "
    )
    remedy = re.search(re.escape(text) + "(chmod .*)", out)
    assert remedy, out
    subprocess.run(shlex.split(remedy[1]), check=True)
    installation.out("doctor")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the system has no such limit")
def test_a_full_cache_is_named_with_another_remedy(tmp_path: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, 1 << 18))"
    done = run_doctor(limit)
    assert done.returncode == 1
    assert (
        "cannot be written: File too large: each start compiles anew. Delete something ('armpy "
        "cache clear'), or set ARMPY_CACHE_DIR to another folder"
    ) in done.stdout


def test_a_cache_that_can_be_written_is_no_problem(installation: Cli, tmp_path: Path) -> None:
    assert f"cache: {tmp_path / 'cache'}, writable, " in installation("doctor")[1]


# Files in the place of a model


def unknown_operator(path: Path) -> None:
    """Write a model with an operator that only its maker has."""
    model = TfliteModel()
    graph = model.subgraph()
    x, y = (graph.tensor(name, (1, 4)) for name in "xy")
    graph.operator("CUSTOM", [x], [y], custom_code="AcmeSecret")
    graph.inputs(x)
    graph.outputs(y)
    path.write_bytes(model.to_bytes())


def zipped(path: Path) -> None:
    """Write an archive with a model in it."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(MODEL, "model.tflite")


def holding(content: bytes) -> Callable[[Path], object]:
    """What writes some bytes."""
    return lambda path: path.write_bytes(content)


WHOLE = MODEL.read_bytes()
AGAIN = "Check the path, or download or export the file again"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
PAGE = b"<!DOCTYPE html>\n<html><body>404 Not Found</body></html>"

FILES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "pointer.tflite": (holding(POINTER), "a Git LFS pointer in place of the file itself", AGAIN),
    "pointer.absent": (holding(POINTER), "a Git LFS pointer in place of the file itself", AGAIN),
    "page.tflite": (holding(PAGE), "an HTML or XML page, perhaps of a failed download", AGAIN),
    "text.tflite": (holding(b"no model, but a few words"), "a text file", AGAIN),
    "empty.tflite": (holding(b""), "an empty file", AGAIN),
    "picture.tflite": (holding(b"\x89PNG\r\n\x1a\n" + bytes(80)), "a PNG picture", AGAIN),
    "packed.tflite": (
        holding(gzip.compress(WHOLE)),
        "a gzip archive",
        "Unpack it with 'gunzip < FILE",
    ),
    "zip.tflite": (zipped, "a zip archive", "If it holds a .tflite or .onnx file, unpack it"),
    "keras.h5": (holding(b"\x89HDF\r\n\x1a\n" + bytes(80)), "an HDF5 file", "Convert the model"),
    "pickle.pt": (holding(b"\x80\x02" + bytes(80)), "a Python pickle", "Convert the model"),
    "words.gguf": (holding(b"GGUF" + bytes(80)), "a GGUF file", "Convert the model"),
    "zeros.tflite": (holding(bytes(8192)), r"the bytes b'\x00", "Convert the model"),
    "cut.tflite": (holding(WHOLE[:1500]), "damaged or cut short", "Copy or export the file again"),
    "short.tflite": (holding(WHOLE[:-9]), "damaged or cut short", "Copy or export the file again"),
    "custom.tflite": (
        unknown_operator,
        "the operator: custom 'AcmeSecret' x1",
        "Export the model without",
    ),
}
"""What writes each file, what the doctor says that it is, and what to do."""


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_sound_model_is_named(name: str, cli: Cli, tmp_path: Path) -> None:
    make, what, remedy = FILES[name]
    make(tmp_path / name)
    out = cli.out("doctor", tmp_path / name, code=1)
    assert what in out
    assert remedy in out


@pytest.mark.parametrize("name", ["packed.tflite", "zip.tflite"])
def test_a_packed_model_is_sound_after_it_is_unpacked_as_the_doctor_says(
    name: str, installation: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    FILES[name][0](tmp_path / name)
    out = installation.out("doctor", name, code=1)
    command = re.search(r"Unpack it with '(gunzip [^']+)'", out)
    if command is None:
        assert ", unpack it" in out
        with zipfile.ZipFile(name) as archive:
            archive.extractall()
    else:
        line = command[1].replace("FILE", name).replace("MODEL", "model.tflite")
        subprocess.run(line, shell=True, check=True)
    assert "contents: sound" in installation("doctor", "model.tflite")[1]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the system has no such modes")
def test_a_module_that_others_can_write_is_used_after_the_command_that_the_doctor_names(
    cli: Cli, tmp_path: Path
) -> None:
    path = write_module(tmp_path, "Acme_Npu_backend")
    path.chmod(0o666)
    out = cli.out("doctor", "--dynamic-backends-path", tmp_path, code=1)
    found = re.search(r"Run (chmod go-w) on it", out)
    assert found is not None
    subprocess.run([*found[1].split(), str(path)], check=True)
    assert "chmod" not in cli("doctor", "--dynamic-backends-path", tmp_path)[1]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (POINTER, "the file holds no model. got a Git LFS pointer in place of the file itself."),
        (b"\x08\x08\x12\x07pytorch", "no installed front-end reads .onnx files"),
    ],
)
def test_what_is_no_model_is_named_before_an_extension_that_reads_the_suffix(
    content: bytes, text: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_backends_in(registry_of(FakeBackend("Acme")), monkeypatch)
    (tmp_path / "m.onnx").write_bytes(content)
    out = cli.out("doctor", tmp_path / "m.onnx", code=1)
    assert text.lower() in out.lower()


@pytest.mark.parametrize("name", ["renamed.onnx", "renamed.bin", "renamed"])
def test_a_renamed_model_is_known_by_its_contents(name: str, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(WHOLE)
    out = cli.out("doctor", tmp_path / name)
    assert "contents: sound" in out
    assert "name: does not end in .tflite, as files of this format do" in out


def test_a_name_that_goes_with_the_format_is_not_mentioned(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "M.TFLITE").write_bytes(WHOLE)
    out = cli.out("doctor", tmp_path / "M.TFLITE", "--front-end", "tflite")
    assert "contents: sound" in out
    assert "does not end in" not in out


def test_the_doctor_takes_the_front_end_that_messages_name(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(WHOLE)
    out = cli.out("doctor", tmp_path / "m", "--front-end", "tflit", code=1)
    assert "there is no front-end 'tflit'" in out
    with armpy.load(tmp_path / "m", backends=["CpuRef"]) as model:
        model.save(tmp_path / "m.armpy")
    error = cli.err("doctor", tmp_path / "m.armpy", "--front-end", "tflite")
    assert "--front-end goes with a FILE that is not compiled" in error


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--no-such-option",), "no such option"),
        (("nowhere.tflite",), "File 'nowhere.tflite' does not exist. Check the path"),
        ((str(ROOT / "docs"),), "is a directory"),
        (("--probe-timeout", "never"), "Expected a finite number from 0 to 3600; got 'never'"),
    ],
)
def test_a_wrong_option_is_an_error_with_its_own_status(
    arguments: tuple[str, ...], text: str, cli: Cli
) -> None:
    assert text.lower() in cli.err("doctor", *arguments, code=2).lower()
