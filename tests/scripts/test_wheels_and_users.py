"""The scripts that try wheels and follow a new user: what they must catch, they catch."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # its dataclasses look there
    spec.loader.exec_module(module)
    return module


def test_a_command_that_fails_ends_the_users_path(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    user = script("new_user")
    steps = [
        user.Step([sys.executable, "-c", "pass"]),
        user.Step([sys.executable, "-c", "raise SystemExit(3)"]),
        user.Step([sys.executable, "-c", "print('never')"]),
    ]
    assert user.follow(steps, tmp_path) == 1
    out = capfd.readouterr().out
    assert "exit code 3" in out
    assert "\nnever\n" not in out
    assert user.follow(steps[:1], tmp_path) == 0
    assert "1 commands, no error" in capfd.readouterr().out


def test_what_a_command_has_left_behind_is_checked(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    user = script("new_user")
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for name in ("a.png", "b.png"):
        (pictures / name).touch()
    table = tmp_path / "results.csv"
    table.write_text("file,class\na.png,1\nb.png,2\n")
    assert user.wrong_rows(table, pictures) == ""
    table.write_text("file,class\na.png,1\n")
    assert user.wrong_rows(table, pictures) == "1 rows for 2 pictures"
    step = user.Step([sys.executable, "-c", ""], lambda: user.wrong_rows(table, pictures))
    assert user.follow([step], tmp_path) == 1
    assert "1 rows for 2 pictures" in capfd.readouterr().out


def test_a_path_that_takes_too_long_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    user = script("new_user")
    monkeypatch.setattr(user, "LIMIT_S", 0.0)
    assert user.follow([user.Step([sys.executable, "-c", ""])], tmp_path) == 1
    assert "too slow" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({}, ""),
        ({"outputs": [{"classes": [{"index": 1}]}]}, "the digit was read as 1"),
        ({"layers_by_backend": {"CpuRef": 10}}, "it ran on CpuRef"),
    ],
)
def test_wheels_are_judged_by_the_digit_and_the_backend(
    changed: dict[str, object], problem: str
) -> None:
    document = {
        "outputs": [{"classes": [{"index": 7}]}],
        "layers_by_backend": {"NumbaAcc": 10},
    }
    assert script("try_wheels").wrong_in(json.dumps(document | changed), "NumbaAcc") == problem


def test_interpreters_are_asked_for_their_version(tmp_path: Path) -> None:
    wheels = script("try_wheels")
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert wheels.version_of(Path(sys.executable)) == here
    assert wheels.version_of(tmp_path / "python") == ""
