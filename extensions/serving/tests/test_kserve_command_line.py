"""The command line of KServe's server: missing packages, hyphens, and errors of one line."""

from __future__ import annotations

import sys

import pytest

from armpy.plugins import install_line
from armpy_serving.kserve.__main__ import main
from armpy_serving.kserve.command_line import CommandLineParser


@pytest.fixture
def parser() -> CommandLineParser:
    parser = CommandLineParser(prog="serve")
    parser.add_argument("--model_dir", help="a model file")
    parser.add_argument("--model_name", help="The name of the model.")
    parser.add_argument("--http_port", type=int)
    parser.add_argument("--name")
    return parser


def test_without_kserve_the_command_that_installs_it_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("armpy_serving.kserve.")]:
        if name != "armpy_serving.kserve.__main__":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kserve", None)
    assert main(["--model_dir", "m"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("Error: KServe's server needs armpy-serving[kserve] (")
    assert error.endswith(f". Run: {install_line('armpy-serving[kserve]')}\n")
    assert len(error.splitlines()) == 1


def test_hyphens_stand_for_underscores_of_options_and_of_nothing_else(
    parser: CommandLineParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--model-dir=a-b", "--http-port", "80", "--name", "a-c"]
    parsed = parser.parse_args(words)
    assert (parsed.model_dir, parsed.http_port, parsed.name) == ("a-b", 80, "a-c")
    monkeypatch.setattr(sys, "argv", ["serve", "--model-dir", "m"])
    assert parser.parse_args().model_dir == "m"


def test_an_error_is_one_line(
    parser: CommandLineParser, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args(["--modle-dir", "m"])
    error = "Error: unrecognized arguments: --modle-dir m. See serve --help\n"
    assert capsys.readouterr().err == error
