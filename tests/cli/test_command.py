"""The command as a whole, called in this process."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from armpy_testing.command_line import Cli

for library in ("click", "PIL"):
    pytest.importorskip(library)

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
MODEL = str(DIGITS / "digits_int8.tflite")
LABELS = str(DIGITS / "labels.txt")
INPUT = "serving_default_image:0"
OUTPUT = "StatefulPartitionedCall_1:0"

DIGIT_NAMES = Path(LABELS).read_text("utf-8").split()


def test_a_digit_is_recognised(cli: Cli) -> None:
    name = "seven"
    picture = str(DIGITS / "pictures" / f"{name}.png")
    out = cli.out("run", MODEL, "--image", picture, "--labels", LABELS)
    lines = out.splitlines()
    assert lines[0] == f"inputs: {picture}, 128x128 pixels, as int8 (1, 16, 16, 1)"
    assert lines[1].startswith(f"output: {OUTPUT} int8 (1, 10) min 0 ")
    assert lines[2].split() == ["class", "score", "label"]
    assert lines[3].split()[::2] == [str(DIGIT_NAMES.index(name)), name]
    assert lines[8].startswith("placement: 10 layers: NumbaAcc 10; 1 partition, 0 copies")
    assert len(lines) == 9


def test_json_has_null_where_a_number_is_not_finite(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_finite(_: object) -> tuple[float, float, float]:
        return float("nan"), float("inf"), 1.0

    monkeypatch.setattr("armpy.cli.run.results._figures", not_finite)
    report = cli.document("run", MODEL)
    (output,) = report["outputs"]
    assert (output["min"], output["max"], output["mean"]) == (None, None, 1.0)


def test_no_command_shows_the_help_on_stderr(cli: Cli) -> None:
    assert cli.err().startswith("Usage: armpy")
    code, out, err = cli("cache")
    assert code in (0, 2)  # click 8.1 prints the help of a group as if it was asked for
    assert (out + err).startswith("Usage: armpy cache")


@pytest.mark.parametrize("arguments", [("-v", "run", MODEL), ("run", MODEL, "-v")])
def test_verbose_logs_to_stderr(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert re.search(r"^armpy: info: 10 layers", cli(*arguments)[2], re.MULTILINE)


def test_a_traceback_needs_debug(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("by design")

    monkeypatch.setattr("armpy.cli.run.work.run_model", fail)
    code, out, err = cli("run", MODEL)
    assert (code, out) == (1, "")
    assert err == "armpy: error: ZeroDivisionError: by design (--debug shows where)\n"
    code, _, err = cli("run", MODEL, "--debug")
    assert code == 1
    assert "Traceback" in err


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (KeyboardInterrupt(), 130, ""),
        (MemoryError("Unable to allocate 1 TiB"), 1, "out of memory. Unable to allocate 1 TiB."),
        (MemoryError(), 1, "out of memory."),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_stops_a_run_decides_on_the_exit_code(
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    text: str,
) -> None:
    def stop(*_: object) -> None:
        raise error

    monkeypatch.setattr("armpy.cli.run.work.run_model", stop)
    status, out, err = cli("run", MODEL)
    assert (status, out) == (code, "")
    assert text in err
    assert bool(err) == bool(text)


@pytest.mark.parametrize("command", ["inspect"])
def test_a_preference_is_followed_and_alternatives_are_printed(cli: Cli, command: str) -> None:
    options = ("--backends", "CpuRef,NumbaAcc", "--preference", "sustained")
    out = cli.out(command, MODEL, "--json", *options)
    alternatives = json.loads(out)["alternatives"]
    assert {alternative["name"] for alternative in alternatives} >= {"CpuRef", "NumbaAcc"}
    (chosen,) = [alternative for alternative in alternatives if alternative["is_chosen"]]
    assert chosen == min(alternatives, key=lambda alternative: alternative["estimated_us"])
    _, out, _ = cli(command, MODEL, *options)
    assert "Placements that were weighed" in out
    assert cli.document(command, MODEL, *options[:2])["alternatives"] == []


def test_backends_are_isolated(cli: Cli) -> None:
    isolation = "CpuRef=process"
    command = ("run", MODEL, "--backends", "CpuRef")
    isolated = cli.document(*command, "--isolation", isolation)["placement"]
    assert isolated["layers_by_backend"] == {"CpuRef": 10}
    # Working memory is in the backend's process; here are inputs and outputs.
    here = cli.document(*command)["placement"]
    assert isolated["working_memory_bytes"] < here["working_memory_bytes"]


@pytest.mark.skipif(sys.platform == "win32", reason="folders in use cannot be removed there")
def test_outputs_in_a_folder_that_was_removed_are_refused_by_their_names(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / "gone").mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    status, _, err = cli("profile", MODEL, "-o", "x.json")
    assert status == 2
    assert re.match(r"armpy: error: x[.\w]*: it cannot be written: No such file", err)
