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
from armpy.plugins import install_line
from armpy_testing.command_line import Cli, armpy_command
from armpy_testing.installed import NEEDS_KIT, NEEDS_TOOLS

for library in ("click", "rich", "PIL"):
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
        "wide": np.zeros((1, 16, 16, 2), np.int8),
        "int32": np.zeros((1, 16, 16, 1), np.int32),
    }
    made = {
        "out": str(folder / "out"),
        "folder": str(folder),
        "few": str(folder / "few.txt"),
        "red": str(folder / "red.txt"),
        "empty": str(folder / "empty.json"),
        "archive": str(folder / "archive.npz"),
        "compiled": str(folder / "model.armpy"),
        "input": INPUT,
    }
    for name, array in arrays.items():
        made[name] = str(folder / f"{name}.npy")
        np.save(made[name], array)
    np.savez(made["archive"], allow_pickle=False, **arrays)
    Path(made["few"]).write_text("zero\none\n")
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

WRONG: list[object] = [
    ("run", "Missing argument 'MODEL'"),
    ("run nothing.tflite", "'nothing.tflite' does not exist"),
    ("run {folder}/modle.armpy", "does not exist. Did you mean '", "model.armpy'?"),
    ("run {pictures} {seven}", "is a directory. Give a file here: armpy run [OPTIONS] MODEL"),
    ("run {model} --bogus", "No such option"),
    ("compile {model} --input x=3", "'--input'. The command runs nothing: --shape gives the shape"),
    ("walk", "No such command 'walk'. Choose one that armpy --help lists"),
    ("runn", "No such command 'runn'. Did you mean 'run'?"),
    # Names of extensions are known where these are not installed, too.
    ("benchmrk", "Did you mean 'benchmark'?"),
    ("classify {model}", "Did you mean 'run'?"),
    ("quantise", "Did you mean 'quantize'?"),
    (
        "serve {model}",
        f"({install_line('armpy-serving[kserve]')}). "
        "Run: python -m armpy_serving.kserve --model_dir FILE",
    ),
    ("new_backend", "Did you mean 'new-backend'?"),
    ("run {model} --top 0", "got '0'"),
    ("run {model} --repeat 0", "got '0'"),
    ("run {model} --num-threads 0", "got '0'"),
    ("run {model} --on-fallback maybe", "got 'maybe'"),
    ("run {model} --size 3", "expected HEIGHTxWIDTH"),
    ("run {model} --size 3x3", "no image input of open size"),
    ("devices Npu", "unexpected extra argument (Npu). Leave it out"),
    ("run {model} --providers NumbaAcc", "'--providers'. Did you mean '--backends'?"),
    ("run {model} --dimension batch=3", "Did you mean '--shape'?"),
    ("run {model} --threshold 0.5", "'--threshold'. Check its name, or leave it out."),
    ("run {model} -labels {labels}", "'-labels' has a single dash. Write it with two: --labels"),
    ("run https://host/model.tflite", "Download it, and give the path"),
    ("run --model {model}", "Write it without one: armpy run [OPTIONS] MODEL"),
    # Pictures
    ("run {model} --image {seven} --size 3x3", "Expected 16x16; got 3x3"),
    ("run {model} --image {seven} --mean 1,2", "Expected 1 number; got 2"),
    ("run {model} --image {labels}", "not a picture that can be read"),
    ("run {model} --image {seven} --labels {seven}", "not a text file"),
    ("run {model} --labels {few}", "Expected 10 labels; got 2"),
    ("run {model} {seven} {seven}", "Expected a file; got", "Use armpy pictures"),
    (
        "run {model} {pictures}",
        "the command takes one picture. Expected a file",
        "Use armpy pictures",
    ),
    ("run {model} --image {pictures}/*.png", "the command takes one picture", "Use armpy pictures"),
    (
        "run {model} {seven} --output results.csv",
        "--output names a file of results",
        "Use armpy pictures",
    ),
    ("run {model} {seven} --input {int32}", "every input has a value already", "Leave out"),
    ("run {model} {int32}", "not a picture that can be read", "an array is given with --input"),
    ("cache clear digits", "If it is a model's name, give it as --model digits"),
    ("compare {model} {model}", "Did you mean 'diff'?"),
    # Arrays and names
    ("run {model} --input y=x.npy", f"no such input. Expected '{INPUT}'"),
    ("run {model} --input {input}={model}", "not a .npy file"),
    ("run {model} --input {input}={archive}", "got an archive", "each to a file of its own"),
    ("run {model} --input {input}={labels}", "not an array of numbers"),
    ("run {model} --input {input}={wide}", "got (1, 16, 16, 2)"),
    ("run {model} --input {input}={int32}", "got int32 (1, 16, 16, 1)"),
    ("run {model} --input {input}={real}", "Quantise them with --quantize-inputs"),
    ("run {model} --signature other", "no such signature. Expected 'serving_default'"),
    ("run {model} --output {labels}", "is a file"),
    ("run --profile {model}", "expected a name that ends in .json"),
    ("profile no_such.tflite", "no_such.tflite"),
    # Backends and where layers run
    ("run {model} --backends ,", "expected names"),
    ("inspect {model} --backend A,", "'A,': expected names with commas between them."),
    (
        "run {model} --backends NumbaAcc CpuRef",
        "'CpuRef' is a backend. Separate backends by commas: --backends NumbaAcc,CpuRef.",
    ),
    ("inspect --backend=NumbaAcc CpuRef {model}", "by commas: --backend NumbaAcc,CpuRef."),
    ("profile --backends NumbaAcc CpuRef {model}", "by commas: --backends NumbaAcc,CpuRef."),
    ("run {model} --backend-option CpuRef.threads=1", "the backend has no option 'threads'"),
    ("run {model} --backends CpuRef --isolation Npu=process", "there is no backend 'Npu'"),
    ("run {model} --backends CpuRef --isolation CpuRef=thread", "isolation['CpuRef']"),
    ("run {model} --backends CpuRef --isolation thread", "isolation: "),
    (
        "run {model} --affinity CpuRef",
        "--affinity: the text assigns no layers to a backend. Expected PATTERN=BACKEND",
    ),
    (
        "run {model} --affinity conv*=Npu",
        "the runtime does not use the backend 'Npu'",
        "Choose an expected backend; if 'Npu' is installed, add it to --backends.",
    ),
    (
        "run {model} --affinity CpuRef=*",
        "Write the pattern first, then the backend: --affinity '*=CpuRef'.",
    ),
    (
        "run {model} --affinity *=Numba",
        "Did you mean 'NumbaAcc'? If not, add 'Numba' to --backends.",
    ),
    ("run {model} --affinity zz*=CpuRef", "no layer of the network has the name 'zz*'", "List all"),
    ("run {model} --affinity *maxpool*=CpuRef", "Did you mean '*MaxPool*'?"),
    ("run {model} --affinity MaxPool=CpuRef", "Did you mean '*MaxPool*'?"),
    # Whose code is used
    ("run {model} --trusted-key ed25519:AAAA", "expected 32 bytes that are not all zero"),
    ("run {model} --trusted-key absent.pem", "the key cannot be read: No such file"),
    ("run {model} --code any", "'trusted', 'signed', 'never'; got 'any'"),
    ("doctor --code never", "--front-end, --trusted-key and --code go with a FILE"),
    ("doctor --front-end onnx", "--front-end, --trusted-key and --code go with a FILE"),
    # Options that are given twice
    ("run {model} --labels {labels} --top=1 --labels {labels}", "--labels is given 2 times"),
    ("run --seed 1 {model} --seed=2", "--seed is given 2 times, and takes one value"),
    ("run {model} --resize crop --resize pad", "--resize is given 2 times"),
    ("inspect {model} --signature a --signature b", "--signature is given 2 times"),
    (
        "run {model} --backend-option NumbaAcc.num_threads=1"
        " --backend-option NumbaAcc.num_threads=1",
        "--backend-option NumbaAcc.num_threads: the option is given twice",
    ),
    # Compiled models
    (
        "compile {model} -o {folder}/y.tflite",
        "the command writes a compiled model. Name it ",
    ),
    ("compile {model} -o y.onnx", "Name it y.armpy."),
    ("profile {model} -o y.html", "the command writes a JSON document. Name it y.json."),
    ("inspect {model} --dot y.png", "the command writes text for Graphviz. Name it y.dot."),
    (
        "run {model} --output {folder}/x.txt",
        "--output: the name is that of a file. Expected a folder",
        "x.txt/ for a folder of this name.",
    ),
    ("compile -o x", "Missing"),
    ("compile {model}", "Missing", "Name the file to write: -o digits_int8.armpy."),
    ("compile {model} {folder}/y.armpy", "If it is what to write, give it as --output"),
    ("compile {model} {compiled}", "If it is what to write, give it as --output"),
    ("compile {model} {model}", "Leave it out"),
    ("compile", "Missing"),
    ("compile {model} -o {out} --target neoverse-n11", "Did you mean 'neoverse-n1'?"),
    ("compile {model} -o {out} --target AVX2", "Did you mean 'x86-64-v3'?"),
    ("compile {model} -o {out} --target native", "Did you mean 'host'?"),
    ("compile {model} -o {out} --shapes x=1,2", "no such input", INPUT),
    *(
        (
            f"compile {{model}} -o {{out}} --shapes {text}",
            f"'{text}': expected NAME=SIZES such as x=1,224,224,3",
        )
        for text in ("x", "=1", "x=a", "x=1,", "x=-1", "x=1.5")
    ),
    ("run {compiled} --front-end tflite", "no front-end parses it"),
    ("run {compiled} --signature train", "no signature 'train'"),
    ("inspect {compiled} --signature train", "Expected 'serving_default'"),
    ("inspect {compiled} --backends CpuRef", "a compiled model is shown"),
    ("inspect {compiled} --size 8x8", "a compiled model is shown"),
    ("inspect {compiled} --front-end tflite", "a compiled model is shown"),
    # Extensions
    pytest.param(
        ("calibrate --seconds nan", "a finite number from 0 to 3600; got 'nan'"), marks=NEEDS_TOOLS
    ),
    pytest.param(
        ("conformance crash --backend CpuRef --timeout inf", "a finite number above 0"),
        marks=NEEDS_KIT,
    ),
    pytest.param(("quantize {model} {pictures} -o {out}", "give it as --data"), marks=NEEDS_TOOLS),
    pytest.param(("report {model} {model}", "give it as --side-by-side"), marks=NEEDS_TOOLS),
    pytest.param(
        ("benchmark {model} --backends NumbaAcc CpuRef", "by commas: --backends NumbaAcc,CpuRef."),
        marks=NEEDS_TOOLS,
    ),
    pytest.param(("diff {model} --seed 1 --seed 2", "--seed is given 2 times"), marks=NEEDS_KIT),
    pytest.param(
        ("conformance CpuRef --jobs 1 --jobs 2", "--jobs is given 2 times"), marks=NEEDS_KIT
    ),
]
"""Command lines that are refused with exit status 2, and what one line on stderr says."""

FAILED: list[object] = [
    ("run {labels}", "not a .tflite file"),
    ("inspect {labels}", "not a .tflite file"),
    ("run {model} --backends Nowhere", "there is no backend 'Nowhere'"),
    # Errors of the core name options where a command is run, and arguments elsewhere.
    (
        "run {compiled} --code signed",
        "as --code signed says",
        "give the key with --trusted-key; --code never takes the graph alone",
    ),
    ("run {model} --backends CpuRef --backends Missing", "'Missing'"),
    ("cache list --backends Missing", "there is no backend 'Missing'"),
    ("profile compare {empty} {empty}", "there is no profile in the file"),
]
"""Commands that fail with exit status 1, and what one line on stderr says."""


def command_of(row: object) -> str:
    """The command of a row, which names its test."""
    return str(row[0]) if isinstance(row, tuple) else "row"


@pytest.mark.parametrize("row", WRONG, ids=command_of)
def test_a_wrong_command_line_is_refused_in_one_line(
    cli: Cli, files: dict[str, str], row: Row
) -> None:
    command, *messages = row
    err = cli.err(*words(command, files), code=2)
    assert re.fullmatch(r"armpy: error: [^\n]*\n", err)
    for message in messages:
        assert message.lower() in err.lower()
    assert not Path(files["out"]).exists()


@pytest.mark.parametrize("row", FAILED, ids=command_of)
def test_a_failure_is_reported_in_one_line(cli: Cli, files: dict[str, str], row: Row) -> None:
    command, *messages = row
    err = cli.err(*words(command, files), code=1)
    assert re.fullmatch(r"armpy: error: [^\n]*\n", err)
    for message in messages:
        assert message in err


PRINTED: list[object] = [
    ("--version", rf"\Aarmpy {re.escape(armpy.__version__)}\n\Z"),
    *(
        (f"{name} --help", r"\AUsage: armpy")
        for name in ("", "run", "inspect", "backends", "doctor")
    ),
    *(
        pytest.param((f"{name} --help", r"\AUsage: armpy"), marks=NEEDS_KIT)
        for name in ("conformance", "diff", "new-backend")
    ),
    ("run {model} --signature serving_default", r"\noutput: output_0 "),
    ("run {model} --seed 3 --repeat 1", r"\Ainputs: random numbers, seed 3\n"),
    (
        "run {model} --repeat 1",
        r"time: median [\d.]+ ms of 1 run, quartiles [\d.]+ to [\d.]+ ms, min [\d.]+ ms\n",
    ),
    ("run {model} --input {input}={real} --quantize-inputs", rf"inputs: {INPUT}=\S+real\.npy\n"),
    ("run {model} {seven} --labels {red}", r"\A[^\x1b]*\\x1b\[31m\[red\][^\x1b]*\Z"),
    (
        "run {model} --backends NumbaAcc,CpuRef --affinity *MaxPool*=CpuRef",
        r"\A(?s:(?!fell back).)*\nplacement: 10 layers: NumbaAcc 8, CpuRef 2;"
        r"(?s:(?!fell back).)*\Z",
    ),
    # The model once for each backend
    (
        "run {model} --backends NumbaAcc,CpuRef --spread calls",
        "placement: 20 layers: NumbaAcc 10, CpuRef 10;",
    ),
    (
        "inspect {model} --layers --backends CpuRef",
        rf"{INPUT} +\(1, 16, 16, 1\) +int8 +0\.0039215689 +-128\n",
        rf"{OUTPUT} +\(1, 10\) +int8 +0\.00390625 +-128\n",
        r"\n +3  CONV_2D +5,072 ",
        r"serving_default +image +output_0\n",
        r"\n0  CONV_2D +\(1, 16, 16, 16\)  int8 .* CpuRef +\S",
        r"\n9  SOFTMAX +\(1, 10\) +int8 .* CpuRef +\S",
        r"memory: weights 6.63 KiB, working memory [\d.]+ KiB per execution",
    ),
    (
        "inspect {model} --layers",
        r"\n +10  NumbaAcc\n",
        r"\n0  CONV_2D .* 0 +NumbaAcc  \S",
        r"\n9  SOFTMAX .* 0 +NumbaAcc  \S",
    ),
    (
        "inspect {model} --tensors --backends CpuRef",
        r"\n +0  \(1, 16, 16, 1\) +int8 +256  input +0\.00392157 \* \(q \+ 128\)",
        r"\(16, 3, 3, 1\) +int8 +144  parameter  16 scales along axis 0 +0 ",
    ),
    ("backends", "CpuRef"),
    ("cache list --backends CpuRef", r"\Ano backend keeps anything\n\Z"),
    (
        "compile --target help --backends NumbaAcc,CpuRef",
        r"(?m)^neoverse-n1 +NumbaAcc",
        r"(?m)^host +NumbaAcc",
    ),
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
    ("run {model}", {"steps": [], "alternatives": []}),
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
