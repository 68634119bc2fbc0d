from __future__ import annotations

import ast
import copy
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

import armpy
from armpy import errors
from armpy.cli.written_option import written_option
from armpy.errors import (
    Argument,
    ArmpyError,
    InvalidArgumentError,
    UnsupportedOperatorError,
)
from armpy.ops.operation import located

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, ArmpyError)
]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "it failed."),
        ({"where": "conv"}, "conv: it failed."),
        ({"expected": "3", "actual": "4"}, "it failed. Expected 3; got 4."),
        ({"expected": "3"}, "it failed. Expected 3."),
        ({"actual": "4"}, "it failed. Got 4."),
        ({"fix": "Try this."}, "it failed. Try this."),
        # A command is copied to its end.
        ({"fix": "Run: pip install ./x"}, "it failed. Run: pip install ./x"),
        ({"fix": "Run: armpy doctor. It says why"}, "it failed. Run: armpy doctor. It says why."),
        (
            {"where": "conv", "expected": "3", "actual": "4", "fix": "Try this"},
            "conv: it failed. Expected 3; got 4. Try this.",
        ),
        ({"argument": Argument("code", "never")}, "code='never': it failed."),
        ({"where": "conv", "argument": Argument("code")}, "conv / code: it failed."),
    ],
)
def test_the_text_is_built_from_the_fields(fields: dict[str, Any], text: str) -> None:
    assert str(ArmpyError("it failed", **fields)) == text


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_survives_pickling_with_its_fields(kind: type[ArmpyError]) -> None:
    error = kind("it failed", argument=Argument("code", "never"), expected="3", fix="Try this")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is kind
        assert str(again) == str(error)
        assert again.args == error.args


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_is_exported_by_the_package(kind: type[ArmpyError]) -> None:
    assert getattr(armpy, kind.__name__) is kind
    assert kind.__name__ in armpy.__all__


class VendorError(ArmpyError):
    """An error with a signature of its own, as a backend may have."""

    def __init__(self, device: int, code: int) -> None:
        super().__init__(f"device {device} answered {code}")
        self.code = code


def test_a_subclass_with_another_signature_survives_pickling() -> None:
    again = pickle.loads(pickle.dumps(VendorError(1, 7)))
    assert type(again) is VendorError
    assert str(again) == "device 1 answered 7."
    assert again.code == 7


def test_attributes_set_later_survive_pickling() -> None:
    error = UnsupportedOperatorError("operators are missing")
    error.operators = {"FOO": 2}
    assert pickle.loads(pickle.dumps(error)).operators == {"FOO": 2}
    assert UnsupportedOperatorError("others").operators == {}


def test_errors_are_also_the_builtin_kinds_that_they_resemble() -> None:
    assert issubclass(errors.InvalidArgumentError, ValueError)
    assert issubclass(errors.ExecutionTimeoutError, TimeoutError)
    assert issubclass(errors.UnimplementedError, NotImplementedError)


def test_locating_puts_the_outer_place_first() -> None:
    error = located(lambda: "conv", InvalidArgumentError("it failed", where="weights"))
    assert str(error) == "conv / weights: it failed."


def test_locating_does_not_repeat_a_place_that_the_outer_one_names() -> None:
    error = located(lambda: "Reshape 'r'", InvalidArgumentError("it failed", where="Reshape"))
    assert str(error) == "Reshape 'r': it failed."


def test_locating_one_exception_object_again_and_again_adds_nothing() -> None:
    error: ArmpyError = InvalidArgumentError("it failed", where="weights")
    for _ in range(3):
        error = located(lambda: "conv", error)
    assert str(error) == "conv / weights: it failed."


def test_the_nearest_known_name_is_meant_however_it_is_written() -> None:
    known = ["NumbaAcc", "CpuRef"]
    assert errors.did_you_mean("numba-acc", known) == "Did you mean 'NumbaAcc'?"
    assert errors.did_you_mean("cpu", known, "Install it") == "Did you mean 'CpuRef'?"
    assert errors.did_you_mean("xyz", known, "Install it") == "Install it"
    assert errors.did_you_mean("xyz", [], "Install it") == "Install it"
    assert errors.did_you_mean("cpu", ["CpuRef", "OrtCpu"]) == "Did you mean 'CpuRef'?"


def test_a_missing_file_is_answered_with_the_nearest_name_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mobilenet_v2.tflite", "inception.tflite"):
        (tmp_path / name).touch()
    general = "Check the path and the current folder."
    near = tmp_path / "mobilenet_v2.tflite"
    assert errors.suggest_path(tmp_path / "mobilnet-v2.tflite") == f"Did you mean '{near}'?"
    assert errors.suggest_path("inceptoin.tflite") == "Did you mean 'inception.tflite'?"
    assert errors.suggest_path("resnet.tflite") == general  # alike in its suffix alone
    for path in ("nowhere/inception.tflite", near, "a\0b", ""):
        assert errors.suggest_path(path) == general


def test_commands_write_arguments_as_options() -> None:
    def written(name: str, value: object = None) -> str:
        return ArmpyError("it failed", argument=Argument(name, value)).text(written_option)

    assert written("code", "never") == "--code never: it failed."
    assert written("trusted_keys") == "--trusted-key: it failed."
    shapes = {"a b": (1, 2), "c": (3,)}
    assert written("shapes", shapes) == "--shape 'a b=1,2' --shape c=3: it failed."
    assert written("model_options['Npu']") == "model_options['Npu']: it failed."


def test_texts_of_the_core_name_no_option_of_a_command_that_the_caller_need_not_run() -> None:
    """Texts outside of the command line have arguments as data, or name a whole command."""
    root = Path(errors.__file__).parent
    for path in root.rglob("*.py"):
        if "cli" in path.parts or path.stem in ("load_options", "installation"):
            continue
        tree = ast.parse(path.read_text("utf-8"))
        prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                is_whole = any(start in node.value for start in ("armpy ", "python -m armpy_"))
                is_text = id(node) not in prose and not is_whole
                option = re.search(r"(?<![\w-])--[a-z]", node.value) if is_text else None
                assert option is None, f"{path}: {node.value}"
