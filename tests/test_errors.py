from __future__ import annotations

import ast
import copy
import pickle
import re
from pathlib import Path

import pytest

import armpy
from armpy import errors
from armpy.errors import (
    ArmpyError,
    InvalidArgumentError,
    UnsupportedOperatorError,
    argument,
    arguments_written,
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
    ],
)
def test_the_text_is_built_from_the_fields(fields: dict[str, str], text: str) -> None:
    assert str(ArmpyError("it failed", **fields)) == text


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_survives_pickling_with_its_fields(kind: type[ArmpyError]) -> None:
    error = kind("it failed", where="conv", expected="3", actual="4", fix="Try this")
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
    assert errors.did_you_mean("xyz", known, cutoff=0.0).startswith("Did you mean '")
    assert errors.did_you_mean("xyz", [], "Install it", cutoff=0.0) == "Install it"
    assert errors.did_you_mean("cpu", ["CpuRef", "OrtCpu"]) == "Did you mean 'CpuRef'?"


def test_a_path_that_leads_nowhere_is_answered_with_the_nearest_name_of_its_folder(
    tmp_path: Path,
) -> None:
    for name in ("mobilenet_v2.tflite", "labels.txt", "mobilenet_v2.onnx", "résumé.npy"):
        (tmp_path / name).touch()
    general = "Check the path and the current folder."

    def nearest(name: str) -> str:
        return errors.suggest_path(tmp_path / name)

    def meant(name: str) -> str:
        return f"Did you mean '{tmp_path / name}'?"

    assert nearest("mobilnet_v2.tflite") == meant("mobilenet_v2.tflite")
    assert nearest("mobilnet-v2.onnx") == meant("mobilenet_v2.onnx")
    assert nearest("mobilenet_v2.armpy") == meant("mobilenet_v2.onnx")
    assert nearest("lables.txt") == meant("labels.txt")
    assert nearest("lables.png") == general  # less alike, and of another kind
    assert nearest("résume.npy") == meant("résumé.npy")
    assert nearest("inception.tflite") == general  # alike in its ending alone
    assert nearest("nowhere/mobilenet_v2.tflite") == general
    assert nearest("labels.txt/mobilenet_v2.tflite") == general
    assert nearest("labels.txt") == general  # it is there, so something else is wrong with it
    assert errors.suggest_path("a\0b") == general
    assert errors.suggest_path("") == general
    assert errors.suggest_path("https://host/model.onnx").startswith("Download it")


def test_a_name_for_a_path_is_sought_in_the_current_folder_for_a_relative_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits.tflite").touch()
    assert errors.suggest_path("digit.tflite") == "Did you mean 'digits.tflite'?"


def test_arguments_are_written_as_python_has_them_and_as_commands_do() -> None:
    assert (argument("code", "never"), argument("backends")) == ("code='never'", "backends")
    with arguments_written("armpy.cli.written_option:written_option"):
        assert (argument("code", "never"), argument("backends")) == ("--code never", "--backends")
        assert argument("trusted_keys") == "--trusted-key"
        assert argument("shapes", {"a b": (1, 2), "c": (3,)}) == "--shape 'a b=1,2' --shape c=3"
    assert argument("on_fallback", "allow") == "on_fallback='allow'"


def test_texts_of_the_core_name_no_option_of_a_command_that_the_caller_need_not_run() -> None:
    """Texts outside of the command line write arguments by `argument`, or name a whole command."""
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
