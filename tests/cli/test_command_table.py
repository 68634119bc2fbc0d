"""Commands with their inputs, and what comes of each: a refusal, text, or a document.

Words in braces stand for files; see `files`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any  # JSON documents

import numpy as np
import pytest

import armpy
from armpy.ops.operation import Array
from armpy_testing.command_line import Cli, armpy_command
from armpy_testing.installed import NEEDS_KIT, NEEDS_TOOLS

for library in ("click", "PIL"):
    pytest.importorskip(library)

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
INPUT, OUTPUT = "serving_default_image:0", "StatefulPartitionedCall_1:0"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Files by the words that stand for them; `out` is not there yet."""
    folder = tmp_path_factory.mktemp("files")
    examples = {
        "model": "digits_int8.tflite",
        "labels": "labels.txt",
        "pictures": "pictures",
        "seven": "pictures/seven.png",
    }
    arrays: dict[str, Array] = {
        "real": np.zeros((1, 16, 16, 1), np.float32),
    }
    made = {
        "out": str(folder / "out"),
        "folder": str(folder),
        "red": str(folder / "red.txt"),
        "empty": str(folder / "empty.json"),
        "compiled": str(folder / "model.armpy"),
        "input": INPUT,
    }
    for name, array in arrays.items():
        made[name] = str(folder / f"{name}.npy")
        np.save(made[name], array)
    Path(made["red"]).write_text("\n".join(f"\x1b[31m[red]{digit}" for digit in range(10)))
    Path(made["empty"]).write_text('{"traceEvents": []}')
    found = {name: str(DIGITS / path) for name, path in examples.items()}
    assert armpy_command(["compile", found["model"], "-o", made["compiled"]]) == 0
    return made | found


def words(command: str, files: dict[str, str]) -> list[str]:
    """The arguments of a command, with files in the place of words in braces."""
    return [word.format(**files) for word in command.split()]


Row = tuple[str, ...]
"""A command, and texts or patterns, each of which has to be in its output."""

VARYING: list[Row] = [
    ("run", "Missing argument 'MODEL'", "See armpy run --help."),
    ("run {model} --backens CpuRef", "No such option", "--backens", "--backends"),
    ("run {model} --top", "'--top' requires an argument"),
    ("run {model} --top x", "'x' is not a valid integer", "Expected a whole number of at least 1"),
    ("run {model} --on-fallback maybe", "'maybe' is not one of 'allow', 'warn', 'error'"),
    ("run nothing.tflite", "'nothing.tflite' does not exist. Check the path", "See armpy run"),
    ("run {folder}/modle.armpy", "does not exist. Did you mean '", "model.armpy'?"),
    ("cache lst", "No such command 'lst'"),
    ("devices Npu", "unexpected extra argument (Npu)"),
    ("run {model} --backends Nowhere", "there is no backend 'Nowhere'. Expected one of"),
    ("inspect {labels}", "not a .tflite file"),
    ("compile {model} -o {out} --target neoverse-n11", "Did you mean 'neoverse-n1'?"),
]
"""Wrong command lines whose refusals differ by click's version, or by what is installed."""


def command_of(row: object) -> str:
    """The command of a row, which names its test."""
    return str(row[0]) if isinstance(row, tuple) else "row"


@pytest.mark.parametrize("row", VARYING, ids=command_of)
def test_a_wrong_command_line_is_refused_in_one_line(
    cli: Cli, files: dict[str, str], row: Row
) -> None:
    command, *messages = row
    code, out, err = cli(*words(command, files))
    assert (code in (1, 2), out) == (True, "")
    assert re.fullmatch(r"armpy: error: [^\n]*\n", err)
    for message in messages:
        assert message in err


SNAPSHOT = Path(__file__).with_name("wrong_commands.txt")


@NEEDS_KIT
@NEEDS_TOOLS
def test_texts_are_those_that_a_person_has_read(cli: Cli, files: dict[str, str]) -> None:
    """The one place that compares texts of commands.

    To change a text, change its line in the file, or replace the file by what this test prints.
    """
    commands = SNAPSHOT.read_text("utf-8").split("\n")[::3]
    text = ""
    for command in filter(None, commands):
        code, out, err = cli(*words(command, files))
        assert out == ""
        for name in ("folder", "pictures", "seven", "labels", "model"):
            err = err.replace(files[name], f"{{{name}}}")
        text += f"{command}\n    [{code}] {err}\n"
    print(text)
    assert text.split("\n") == SNAPSHOT.read_text("utf-8").split("\n")
    assert not Path(files["out"]).exists()


PRINTED: list[object] = [
    ("--version", rf"\Aarmpy {re.escape(armpy.__version__)}\n\Z"),
    *((f"{name} --help", r"\AUsage: armpy") for name in ("", "run", "doctor")),
    (
        "run {model} --seed 3 --repeat 1",
        r"\Ainputs: random numbers, seed 3\n",
        r"time: median [\d.]+ ms of 1 run, quartiles [\d.]+ to [\d.]+ ms, min [\d.]+ ms\n",
    ),
    ("run {model} --input {input}={real} --quantize-inputs", rf"inputs: {INPUT}=\S+real\.npy\n"),
    ("run {model} {seven} --labels {red}", r"\A[^\x1b]*\\x1b\[31m\[red\][^\x1b]*\Z"),
    (
        "run {model} --backends NumbaAcc,CpuRef --affinity *MaxPool*=CpuRef",
        r"\A(?s:(?!fell back).)*\nplacement: 10 layers: NumbaAcc 8, CpuRef 2;"
        r"(?s:(?!fell back).)*\Z",
    ),
    (
        "inspect {model} --layers --tensors --backends CpuRef",
        rf"{INPUT} +\(1, 16, 16, 1\) +int8 +0\.0039215689 +-128\n",
        rf"{OUTPUT} +\(1, 10\) +int8 +0\.00390625 +-128\n",
        r"\n +3  CONV_2D +5,072 ",
        r"serving_default +image +output_0\n",
        r"\n9  SOFTMAX +\(1, 10\) +int8 .* CpuRef +\S",
        r"memory: weights 6.63 KiB, working memory [\d.]+ KiB per execution",
        r"\n +0  \(1, 16, 16, 1\) +int8 +256  input +0\.00392157 \* \(q \+ 128\)",
        r"\(16, 3, 3, 1\) +int8 +144  parameter  16 scales along axis 0 +0 ",
    ),
    ("inspect {model} --layers", r"\n +10  NumbaAcc\n", r"\n9  SOFTMAX .* 0 +NumbaAcc  \S"),
    ("backends", "CpuRef"),
    ("cache list --backends CpuRef", r"\Ano backend keeps anything\n\Z"),
    ("compile --target help --backends NumbaAcc,CpuRef", r"(?m)^neoverse-n1 +NumbaAcc"),
    (
        "compile {model} -o {folder}/graph.armpy --backends CpuRef",
        "not in it: CpuRef compiles nothing, its 10 layers are the graph",
    ),
]
"""Commands that succeed, and patterns of what they print."""


@pytest.mark.parametrize("row", PRINTED, ids=command_of)
def test_a_command_prints(cli: Cli, files: dict[str, str], row: Row) -> None:
    command, *patterns = row
    out = cli.out(*words(command, files))
    for pattern in patterns:
        assert re.search(pattern, out)


DOCUMENTS: list[tuple[str, dict[str, Any]]] = [
    (
        "run {model} --image {seven} --labels {labels} --top 2 --repeat 2",
        {
            "model": "{model}",
            "layers_by_backend": {"NumbaAcc": 10},
            "timing": {"runs": 2},
            "outputs": [{"shape": [1, 10], "classes": [{"label": "seven"}, {}]}],
        },
    ),
    ("run {model}", {"alternatives": []}),
    (
        "run {model} --backends CpuRef --backend NumbaAcc",
        {"layers_by_backend": {"CpuRef": 10}},
    ),
    (
        "inspect {model}",
        {
            "programs": [{"operation": "PreCompiled", "layers": [*range(10)]}],
            "layers": [*({"index": index} for index in range(9)), {"name": OUTPUT}],
        },
    ),
    ("inspect {compiled} --signature serving_default", {"inputs": [{"name": "image"}]}),
]
"""Commands with ``--json``, and part of the document that they print."""


def assert_within(expected: Any, actual: Any, files: dict[str, str], where: str = "") -> None:
    """Check a document: of objects the keys that are expected, of lists each item."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert_within(value, actual[key], files, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(actual) == len(expected), where
        for index, (value, item) in enumerate(zip(expected, actual, strict=True)):
            assert_within(value, item, files, f"{where}[{index}]")
    elif isinstance(expected, str):
        assert actual == expected.format(**files), where
    else:
        assert actual == expected, where


@pytest.mark.parametrize(("command", "expected"), DOCUMENTS)
def test_a_command_prints_a_document(
    cli: Cli, files: dict[str, str], command: str, expected: dict[str, Any]
) -> None:
    assert_within(expected, cli.document(*words(command, files)), files)
