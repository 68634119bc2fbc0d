"""Files and folders as users have them: odd names, held by others, changed or gone meanwhile."""

from __future__ import annotations

import gc
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy_testing.digits import MODEL

pytestmark = pytest.mark.slow

LONG = ["d" * 60] * 5
ODD = ["Jürgen Ünïcödé 北京", "a b & (c) %TEMP% ^ 'd'"]

_LOAD = """
import hashlib, sys
import armpy
model = armpy.load(sys.argv[1], backends=sys.argv[2].split(","))
answer = model(model.inputs[0].zeros())
print(hashlib.sha256(answer.tobytes()).hexdigest())
"""
ACCELERATED = "NumbaAcc,CpuRef"


@pytest.fixture(scope="module")
def right() -> str:
    """What the model answers."""
    model = armpy.load(str(MODEL), backends=["CpuRef"])
    return _digest(model)


def _digest(model: armpy.Model) -> str:
    return hashlib.sha256(np.asarray(model(model.inputs[0].zeros())).tobytes()).hexdigest()


def start(
    model: Path | str, cache: Path, backends: str = ACCELERATED, code: str = _LOAD, **variables: str
) -> subprocess.Popen[str]:
    """Start a program that loads a model and prints the digest of its answer."""
    return subprocess.Popen(
        [sys.executable, "-c", code, str(model), backends],
        env={**os.environ, "ARMPY_CACHE_DIR": str(cache), "PYTHONUTF8": "1", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def loaded(model: Path | str, cache: Path, backends: str = ACCELERATED, **variables: str) -> str:
    """What such a program prints that ends well."""
    process = start(model, cache, backends, **variables)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    return output.strip()


def under(folder: Path, names: Sequence[str]) -> Path:
    """A folder below another one."""
    path = folder.joinpath(*names)
    path.mkdir(parents=True)
    return path


@contextmanager
def held(paths: Sequence[Path]) -> Iterator[None]:
    """Have files open as a program that checks for viruses has them: shared with nobody."""
    if sys.platform != "win32":
        pytest.skip("this system has no files that are shared with nobody")
    import _winapi

    with ExitStack() as opened:
        for path in paths:
            # Any access, no sharing, an existing file.
            handle = _winapi.CreateFile(str(path), _winapi.GENERIC_READ, 0, 0, 3, 0, 0)
            opened.callback(_winapi.CloseHandle, handle)
        yield


@pytest.mark.parametrize("names", [LONG, ODD], ids=["long", "odd"])
def test_a_model_in_an_odd_folder_runs(names: Sequence[str], tmp_path: Path, right: str) -> None:
    model = under(tmp_path, names) / "model.tflite"
    shutil.copyfile(MODEL, model)
    assert loaded(model, tmp_path / "cache", "CpuRef") == right


@pytest.mark.parametrize("names", [LONG, ODD], ids=["long", "odd"])
def test_an_odd_folder_of_the_cache_and_of_temporary_files_is_used(
    names: Sequence[str], tmp_path: Path, right: str
) -> None:
    cache, temporary = under(tmp_path / "1", names), under(tmp_path / "2", ODD)
    variables = dict.fromkeys(("TEMP", "TMP", "TMPDIR"), str(temporary))
    for _ in range(2):
        assert loaded(MODEL, cache, **variables) == right
    assert [path for path in cache.rglob("*") if path.is_file()]


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_process_that_is_killed_while_it_compiles_leaves_nothing_wrong(
    share: float, tmp_path: Path, right: str
) -> None:
    began = time.perf_counter()
    assert loaded(MODEL, tmp_path / "first") == right
    whole_s = time.perf_counter() - began
    process = start(MODEL, tmp_path / "second")
    with suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=share * whole_s)
    process.kill()
    process.communicate()
    assert loaded(MODEL, tmp_path / "second") == right


def test_a_model_that_another_program_holds_is_named(tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    shutil.copyfile(MODEL, model)
    with held([model]), pytest.raises(armpy.ArmpyError, match=r"model\.tflite"):
        armpy.load(str(model), backends=["CpuRef"])
    armpy.load(str(model), backends=["CpuRef"])


def test_files_of_the_cache_that_another_program_holds_stop_nothing(
    tmp_path: Path, right: str
) -> None:
    assert loaded(MODEL, tmp_path) == right
    with held([path for path in tmp_path.rglob("*") if path.is_file()]):
        assert loaded(MODEL, tmp_path) == right


def test_a_model_file_is_free_after_closing_and_does_no_harm_before(
    tmp_path: Path, right: str
) -> None:
    path, other = tmp_path / "model.tflite", tmp_path / "other.tflite"
    for copy in (path, other):
        shutil.copyfile(MODEL, copy)
    model = armpy.load(str(path), backends=["CpuRef"])
    with suppress(PermissionError):  # on Windows, which replaces no files in use
        os.replace(other, path)
    assert _digest(model) == right
    model.close()
    path.unlink()


def test_a_compiled_model_is_written_over_one_that_is_loaded_or_named(
    tmp_path: Path, right: str
) -> None:
    path = tmp_path / "model.armpy"
    compile_ = [sys.executable, "-m", "armpy", "compile", str(MODEL), "-o", str(path)]
    compile_ += ["--backend", "NumbaAcc"]
    first = subprocess.run(compile_, capture_output=True, text=True, check=False)
    assert first.returncode == 0, first.stderr
    model = armpy.load(str(path))
    again = subprocess.run(compile_, capture_output=True, text=True, check=False)
    assert again.returncode == 0 or "model.armpy" in again.stderr
    assert _digest(model) == right
    model.close()
    del model  # Windows replaces no file that is mapped, as one is while its model is there
    gc.collect()
    last = subprocess.run(compile_, capture_output=True, text=True, check=False)
    assert last.returncode == 0, last.stderr


@pytest.mark.parametrize("name", ["NUL", "CON", "model.tflite.", "aux.tflite", "a:b.tflite"])
def test_a_name_that_is_no_file_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises((armpy.ArmpyError, OSError)) as caught:
        armpy.load(str(tmp_path / name), backends=["CpuRef"])
    assert name.rstrip(".") in str(caught.value)


def test_a_program_without_streams_runs(tmp_path: Path, right: str) -> None:
    answer = tmp_path / "answer"
    code = f"import sys; sys.stdout = sys.stderr = None\n{_LOAD}".replace(
        "print(", f"open({str(answer)!r}, 'w').write("
    )
    process = start(MODEL, tmp_path / "cache", code=code)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert answer.read_text() == right


def test_a_cache_in_which_nothing_can_be_written_stops_nothing(tmp_path: Path, right: str) -> None:
    (tmp_path / "file").write_text("")
    process = start(MODEL, tmp_path / "file" / "cache")
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert output.strip() == right
    assert "file" in errors  # a warning names it
