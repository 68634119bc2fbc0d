"""What `armpy.load` raises for a sound file when the file is not the cause."""

from __future__ import annotations

import contextlib
import gc
from pathlib import Path
from typing import Any

import pytest

import armpy
from armpy.errors import BackendError, InvalidArgumentError, ParserError
from armpy.execution import Runtime
from armpy.model import model_files
from armpy_testing.backends.fake_backends import FakeBackend, RecordingContext, runtime_of

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"


def test_a_closed_runtime_is_not_blamed_on_the_file() -> None:
    runtime = Runtime()
    runtime.close()
    with pytest.raises(InvalidArgumentError, match="the runtime is closed"):
        armpy.load(DIGITS, runtime=runtime)


def test_a_context_that_raises_is_not_blamed_on_the_file() -> None:
    context = RecordingContext("A", [], {"before_load_network": ValueError("busy")})
    with pytest.raises(BackendError, match=r"A / before_load_network: .*busy"):
        armpy.load(DIGITS, runtime=runtime_of(FakeBackend("A", context=context)))


def test_too_much_memory_is_an_error_of_the_file() -> None:
    with pytest.raises(ParserError, match="larger than the memory limit"):
        armpy.load(DIGITS, memory_limit_bytes=3000)


def test_a_model_of_a_file_closes_the_runtime_that_was_made_for_it() -> None:
    model = armpy.load(DIGITS)
    model.close()
    assert model.runtime.is_closed


@pytest.mark.parametrize("is_collecting", [True, False])
@pytest.mark.parametrize("contents", [None, b"no model"], ids=["a model", "no model"])
def test_python_looks_for_no_cycles_while_a_model_is_loaded(
    contents: bytes | None, is_collecting: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(DIGITS.read_bytes() if contents is None else contents)
    states: list[bool] = []
    load_file = model_files.load_file

    def noted(*arguments: Any) -> armpy.Model:
        states.append(gc.isenabled())
        return load_file(*arguments)

    monkeypatch.setattr(model_files, "load_file", noted)
    was_collecting = gc.isenabled()
    (gc.enable if is_collecting else gc.disable)()
    try:
        with contextlib.nullcontext() if contents is None else pytest.raises(ParserError):
            armpy.load(path, backends=["CpuRef"]).close()
        assert (states, gc.isenabled()) == ([False], is_collecting)
    finally:
        (gc.enable if was_collecting else gc.disable)()
