"""The command as a whole, called in this process."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from armpy_testing.command_line import Cli
from armpy_testing.installed import NEEDS_KIT

for library in ("click", "rich", "PIL"):
    pytest.importorskip(library)

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
MODEL = str(DIGITS / "digits_int8.tflite")
LABELS = str(DIGITS / "labels.txt")
SEVEN = str(DIGITS / "pictures" / "seven.png")
INPUT = "serving_default_image:0"
OUTPUT = "StatefulPartitionedCall_1:0"

DIGIT_NAMES = Path(LABELS).read_text("utf-8").split()


@pytest.mark.parametrize("name", DIGIT_NAMES)
def test_every_digit_is_recognised(cli: Cli, name: str) -> None:
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


def test_outputs_are_written(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    out = cli.out("run", MODEL, "--image", SEVEN, "--output", str(folder))
    path = folder / "StatefulPartitionedCall_1_0.npy"
    assert f"written: {path}\n" in out
    stored = np.load(path)
    assert (stored.dtype, stored.shape, int(stored.argmax())) == (np.int8, (1, 10), 7)


def test_inspect_as_json_has_everything(cli: Cli) -> None:
    report = cli.document("inspect", MODEL, "--backends", "CpuRef")
    assert sum(report["operators"].values()) == 10
    layers, tensors = report["layers"], report["tensors"]
    assert [layer["index"] for layer in layers] == list(range(10))
    assert tensors[layers[0]["inputs"][0]]["name"] == INPUT
    assert tensors[report["file_outputs"][0]]["name"] == OUTPUT
    assert report["parameters"] == sum(layer["parameters"] for layer in layers)
    assert report["file_bytes"] == Path(MODEL).stat().st_size


def test_inspect_draws_the_network(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "model.dot"
    cli.out("inspect", MODEL, "--dot", str(path), "--backends", "CpuRef")
    text = path.read_text("utf-8")
    assert text.startswith("digraph")
    assert text.count("BackendID : CpuRef") == 10


def test_inspect_draws_a_compiled_region_as_one_node(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "model.dot"
    cli.out("inspect", MODEL, "--dot", str(path))
    text = path.read_text("utf-8")
    assert text.count("BackendID : NumbaAcc") == 1
    assert re.search(r"\{PreCompiled\|program : \d+ commands for \w+\\l", text)


def test_backends_are_listed_unloaded_and_loaded(cli: Cli) -> None:
    def of_reference(*arguments: str) -> dict[str, object]:
        entries = cli.document("backends", *arguments)["backends"]
        assert isinstance(entries, list)
        (entry,) = (e for e in entries if e["id"] == "CpuRef")
        assert isinstance(entry, dict)
        return entry

    listed, loaded = of_reference(), of_reference("--load")
    assert (listed["status"], listed["device_type"]) == ("found", "")
    assert (loaded["status"], loaded["device_type"]) == ("registered", "CPU_REFERENCE")
    assert "CpuRef" in cli.out("backends")


def test_no_command_shows_the_help_on_stderr(cli: Cli) -> None:
    assert cli.err().startswith("Usage: armpy")


@pytest.mark.parametrize("group", ["cache", pytest.param("conformance", marks=NEEDS_KIT)])
def test_no_command_of_a_group_shows_the_groups_help(cli: Cli, group: str) -> None:
    _, out, err = cli(group)
    assert re.match(rf"Usage: armpy {group} .*\n\n  \w", out + err)


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


@pytest.mark.parametrize("command", ["run", "inspect"])
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


@pytest.mark.parametrize("isolation", ["process", "CpuRef=process"])
def test_backends_are_isolated(cli: Cli, isolation: str) -> None:
    command = ("run", MODEL, "--backends", "CpuRef")
    isolated = cli.document(*command, "--isolation", isolation)["placement"]
    assert isolated["layers_by_backend"] == {"CpuRef": 10}
    # Working memory is in the backend's process; here are inputs and outputs.
    here = cli.document(*command)["placement"]
    assert isolated["working_memory_bytes"] < here["working_memory_bytes"]


@pytest.mark.skipif(sys.platform == "win32", reason="folders in use cannot be removed there")
@pytest.mark.parametrize(
    "command",
    [
        "compile {} -o x.armpy",
        "profile {} -o x.json",
        "run {} --output x",
        "inspect {} --dot x.dot",
    ],
)
def test_outputs_in_a_folder_that_was_removed_are_refused_by_their_names(
    command: str, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / "gone").mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    status, _, err = cli(*command.format(MODEL).split())
    assert status == 2
    assert re.match(r"armpy: error: x[.\w]*: it cannot be written: No such file", err)
