"""The command as a whole, called in this process."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy_testing.command_line import Cli
from armpy_testing.installed import NEEDS_KIT, NEEDS_TOOLS

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
    assert lines[0] == f"inputs: {picture}, 128x128 pixels, as QASYMM_S8 (1, 16, 16, 1)"
    assert lines[1].startswith(f"output: {OUTPUT} QASYMM_S8 (1, 10) min 0 ")
    assert lines[2].split() == ["class", "score", "label"]
    assert lines[3].split()[::2] == [str(DIGIT_NAMES.index(name)), name]
    assert lines[8].startswith("placement: 10 layers: NumbaAcc 10; 1 partition, 0 copies")
    assert len(lines) == 9


def test_the_run_as_json(cli: Cli) -> None:
    options = ["--image", SEVEN, "--labels", LABELS, "--top", "2", "--repeat", "2"]
    report = cli.document("run", MODEL, *options)
    assert report["model"] == MODEL
    assert report["layers_by_backend"] == {"NumbaAcc": 10}
    assert report["timing"]["runs"] == 2
    (output,) = report["outputs"]
    assert output["shape"] == [1, 10]
    assert output["classes"][0]["label"] == "seven"
    assert len(output["classes"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([SEVEN, SEVEN], "Expected a file; got"),
        ([str(DIGITS / "pictures")], "the command takes one picture. Expected a file"),
        (["--image", f"{DIGITS}/*.png"], "the command takes one picture"),
        ([SEVEN, "--output", "results.csv"], "--output names a file of results"),
    ],
)
def test_many_pictures_are_for_the_command_of_an_extension(
    cli: Cli, arguments: list[str], message: str
) -> None:
    err = cli.err("run", MODEL, *arguments)
    assert message in err
    assert "Use armpy pictures" in err


def test_json_has_null_where_a_number_is_not_finite(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_finite(_: object) -> tuple[float, float, float]:
        return float("nan"), float("inf"), 1.0

    monkeypatch.setattr("armpy.cli.run.results._figures", not_finite)
    report = cli.document("run", MODEL)
    (output,) = report["outputs"]
    assert (output["min"], output["max"], output["mean"]) == (None, None, 1.0)


def test_random_inputs_are_said_to_be_so(cli: Cli) -> None:
    out = cli.out("run", MODEL, "--seed", "3", "--repeat", "1")
    assert "inputs: random numbers, seed 3\n" in out
    assert re.search(
        r"time: median [\d.]+ ms of 1 run, quartiles [\d.]+ to [\d.]+ ms, min [\d.]+ ms\n", out
    )


def test_outputs_are_written(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    out = cli.out("run", MODEL, "--image", SEVEN, "--output", str(folder))
    path = folder / "StatefulPartitionedCall_1_0.npy"
    assert f"written: {path}\n" in out
    stored = np.load(path)
    assert (stored.dtype, stored.shape, int(stored.argmax())) == (np.int8, (1, 10), 7)


def test_an_array_is_run_and_quantised_if_asked_for(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((1, 16, 16, 1), np.float32))
    option = f"{INPUT}={path}"
    assert f"inputs: {option}\n" in cli.out("run", MODEL, "--input", option, "--quantize-inputs")
    assert "Quantise them with --quantize-inputs" in cli.err("run", MODEL, "--input", option)


def test_a_signature_gives_the_names(cli: Cli) -> None:
    assert "output: output_0 " in cli.out("run", MODEL, "--signature", "serving_default")


def test_inspect_shows_what_the_model_is(cli: Cli) -> None:
    out = cli.out("inspect", MODEL, "--layers", "--backends", "CpuRef")
    assert re.search(rf"{INPUT} +\(1, 16, 16, 1\) +QASYMM_S8 +0\.0039215689 +-128\n", out)
    assert re.search(rf"{OUTPUT} +\(1, 10\) +QASYMM_S8 +0\.00390625 +-128\n", out)
    assert re.search(r"\n +3  CONV_2D +5,072 ", out)
    assert re.search(r"serving_default +image +output_0\n", out)
    assert re.search(r"\n0  CONV_2D +\(1, 16, 16, 16\)  INT8 .* CpuRef +\S", out)
    assert re.search(r"\n9  SOFTMAX +\(1, 10\) +INT8 .* CpuRef +\S", out)
    assert re.search(r"memory: weights 6.633 KiB, working memory [\d.]+ KiB per execution", out)


def test_inspect_shows_the_files_layers_where_one_program_has_them_all(cli: Cli) -> None:
    out = cli.out("inspect", MODEL, "--layers")
    assert re.search(r"\n +10  NumbaAcc\n", out)
    assert re.search(r"\n0  CONV_2D .* 0 +NumbaAcc  \S", out)
    assert re.search(r"\n9  SOFTMAX .* 0 +NumbaAcc  \S", out)
    report = cli.document("inspect", MODEL)
    (program,) = report["programs"]
    assert program["operation"] == "PreCompiled"
    assert program["layers"] == list(range(10))
    assert report["layers"][-1]["name"] == OUTPUT


def test_inspect_as_json_has_everything(cli: Cli) -> None:
    report = cli.document("inspect", MODEL, "--backends", "CpuRef")
    assert sum(report["operators"].values()) == 10
    layers, tensors = report["layers"], report["tensors"]
    assert [layer["index"] for layer in layers] == list(range(10))
    assert tensors[layers[0]["inputs"][0]]["name"] == INPUT
    assert tensors[report["file_outputs"][0]]["name"] == OUTPUT
    assert report["parameters"] == sum(layer["parameters"] for layer in layers)
    assert report["file_bytes"] == Path(MODEL).stat().st_size


def test_inspect_lists_tensors(cli: Cli) -> None:
    out = cli.out("inspect", MODEL, "--tensors", "--backends", "CpuRef")
    assert re.search(r"\n +0  \(1, 16, 16, 1\) +INT8 +256  input +0\.00392157 \* \(q \+ 128\)", out)
    assert re.search(r"\(16, 3, 3, 1\) +INT8 +144  parameter  16 scales along axis 0 +0 ", out)


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


def test_the_version(cli: Cli) -> None:
    assert cli.out("--version") == f"armpy {armpy.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("run",),
        ("inspect",),
        ("backends",),
        pytest.param(("conformance",), marks=NEEDS_KIT),
        pytest.param(("diff",), marks=NEEDS_KIT),
        ("doctor",),
        pytest.param(("new-backend",), marks=NEEDS_KIT),
    ],
)
def test_every_command_has_help(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli.out(*arguments, "--help").startswith("Usage: armpy")


def test_no_command_shows_the_help_on_stderr(cli: Cli) -> None:
    assert cli.err().startswith("Usage: armpy")


@pytest.mark.parametrize("group", ["cache", pytest.param("conformance", marks=NEEDS_KIT)])
def test_no_command_of_a_group_shows_the_groups_help(cli: Cli, group: str) -> None:
    _, out, err = cli(group)
    assert re.match(rf"Usage: armpy {group} .*\n\n  \w", out + err)


@pytest.mark.parametrize("arguments", [("-v", "run", MODEL), ("run", MODEL, "-v")])
def test_verbose_logs_to_stderr(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert re.search(r"^armpy: info: 10 layers", cli(*arguments)[2], re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "Missing argument 'MODEL'"),
        (["run", "nothing.tflite"], "'nothing.tflite' does not exist"),
        (["run", MODEL, "--bogus"], "No such option"),
        (["walk"], "No such command 'walk'. Choose one that armpy --help lists"),
        (["runn"], "No such command 'runn'. Did you mean 'run'?"),
        # Names of extensions are known where these are not installed, too.
        (["benchmrk"], "Did you mean 'benchmark'?"),
        (["quantise"], "Did you mean 'quantize'?"),
        (["new_backend"], "Did you mean 'new-backend'?"),
        (["run", MODEL, "--top", "0"], "got '0'"),
        (["run", MODEL, "--repeat", "0"], "got '0'"),
        (["run", MODEL, "--num-threads", "0"], "got '0'"),
        (["run", MODEL, "--on-fallback", "maybe"], "got 'maybe'"),
        (["run", MODEL, "--backends", ","], "expected names"),
        (["run", MODEL, "--size", "3"], "expected HEIGHTxWIDTH"),
        (["run", MODEL, "--size", "3x3"], "no image input of open size"),
        (["devices", "Npu"], "unexpected extra argument (Npu). Leave it out"),
        (["run", MODEL, "--image", SEVEN, "--size", "3x3"], "Expected 16x16; got 3x3"),
        (["run", MODEL, "--image", SEVEN, "--mean", "1,2"], "Expected 1 number; got 2"),
        (["run", MODEL, "--image", LABELS], "not a picture that can be read"),
        (["run", MODEL, "--image", SEVEN, "--labels", SEVEN], "not a text file"),
        (["run", MODEL, "--input", "y=x.npy"], f"no such input. Expected '{INPUT}'"),
        (["run", MODEL, "--input", f"{INPUT}={MODEL}"], "not a .npy file"),
        (["run", MODEL, "--input", f"{INPUT}={LABELS}"], "not an array of numbers"),
        (["run", MODEL, "--signature", "other"], "no such signature. Expected 'serving_default'"),
        (["run", MODEL, "--output", LABELS], "is a file"),
        pytest.param(
            ["calibrate", "--seconds", "nan"],
            "a finite number from 0 to 3600; got 'nan'",
            marks=NEEDS_TOOLS,
        ),
        pytest.param(
            ["conformance", "crash", "--backend", "CpuRef", "--timeout", "inf"],
            "a finite number above 0",
            marks=NEEDS_KIT,
        ),
    ],
)
def test_a_wrong_command_line_is_reported_in_one_line(
    cli: Cli, arguments: list[str], message: str
) -> None:
    err = cli.err(*arguments)
    assert re.fullmatch(r"armpy: error: [^\n]*\n", err)
    assert message in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", LABELS], "not a .tflite file"),
        (["inspect", LABELS], "not a .tflite file"),
        (["run", MODEL, "--backends", "Nowhere"], "there is no backend 'Nowhere'"),
    ],
)
def test_a_failure_is_reported_in_one_line(cli: Cli, arguments: list[str], message: str) -> None:
    err = cli.err(*arguments, code=1)
    assert re.fullmatch(r"armpy: error: [^\n]*\n", err)
    assert message in err


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        ((1, 16, 16, 2), "int8", "got (1, 16, 16, 2)"),
        ((1, 16, 16, 1), "int32", "got int32 (1, 16, 16, 1)"),
    ],
)
def test_an_array_of_another_shape_or_type_is_rejected(
    cli: Cli, tmp_path: Path, shape: tuple[int, ...], dtype: str, message: str
) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros(shape, dtype))
    assert message in cli.err("run", MODEL, "--input", f"{INPUT}={path}")


def test_fewer_labels_than_classes_are_rejected(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "labels.txt"
    path.write_text("zero\none\n")
    assert "Expected 10 labels; got 2" in cli.err("run", MODEL, "--labels", str(path))


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


def test_control_characters_in_names_do_not_reach_the_terminal(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "labels.txt"
    path.write_text("\n".join(f"\x1b[31m[red]{digit}" for digit in range(10)))
    out = cli.out("run", MODEL, "--labels", str(path))
    assert "\x1b" not in out
    assert "\\x1b[31m[red]" in out


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


def test_layers_are_assigned_and_calls_are_spread(cli: Cli) -> None:
    options = ("--backends", "NumbaAcc,CpuRef")
    out = cli.out("run", MODEL, *options, "--affinity", "*MaxPool*=CpuRef")
    assert "placement: 10 layers: NumbaAcc 8, CpuRef 2;" in out
    assert "fell back" not in out
    out = cli.out("run", MODEL, *options, "--spread", "calls")
    assert "placement: 20 layers: NumbaAcc 10, CpuRef 10;" in out  # the model once for each


@pytest.mark.parametrize("isolation", ["process", "CpuRef=process"])
def test_backends_are_isolated(cli: Cli, isolation: str) -> None:
    command = ("run", MODEL, "--backends", "CpuRef")
    isolated = cli.document(*command, "--isolation", isolation)["placement"]
    assert isolated["layers_by_backend"] == {"CpuRef": 10}
    # Working memory is in the backend's process; here are inputs and outputs.
    here = cli.document(*command)["placement"]
    assert isolated["working_memory_bytes"] < here["working_memory_bytes"]


@pytest.mark.parametrize(
    ("isolation", "message"),
    [
        ("Npu=process", "there is no backend 'Npu'"),
        ("CpuRef=thread", "isolation['CpuRef']"),
        ("thread", "isolation: "),
    ],
)
def test_an_isolation_that_does_not_exist_is_refused(
    cli: Cli, isolation: str, message: str
) -> None:
    assert message in cli.err("run", MODEL, "--backends", "CpuRef", "--isolation", isolation)


@pytest.mark.parametrize(
    ("affinity", "message"),
    [
        ("CpuRef", "--affinity: the text assigns no layers to a backend. Expected PATTERN=BACKEND"),
        ("conv*=Npu", "the runtime does not use the backend 'Npu'"),
        ("zz*=CpuRef", "no layer of the network has the name 'zz*'"),
    ],
)
def test_an_affinity_that_cannot_be_kept_is_refused(cli: Cli, affinity: str, message: str) -> None:
    assert message in cli.err("run", MODEL, "--affinity", affinity)
