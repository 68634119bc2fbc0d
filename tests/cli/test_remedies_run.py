"""Remedies that messages print: each is taken from the message's text and run, and helps.

What needs something from outside, such as another file or an installation, is not run here.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.errors import ArmpyError
from armpy_testing.command_line import Cli
from armpy_testing.models.onnx_texts import HEAD
from tests.support.pages import ROOT

for library in ("click", "rich", "PIL", "onnx.parser", "armpy_onnx", "armpy_tools"):
    pytest.importorskip(library)

MODEL = ROOT / "examples" / "digits" / "digits_int8.tflite"
OPEN = """graph (float[batch, 1, length] x, float[batch, 1, 1] state) => (float[b, 1, l] y)
    <float[1, 1, 3] w = {1.0, 2.0, 3.0}> { p = Conv (x, w) y = Add (p, state) }"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with models and a program, and a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("ARMPY_BACKENDS", "CpuRef")
    for name in ("m.tflite", "m"):
        (tmp_path / name).write_bytes(MODEL.read_bytes())
    onnx = pytest.importorskip("onnx")
    model = onnx.parser.parse_model(HEAD + OPEN)
    (tmp_path / "open.onnx").write_bytes(model.SerializeToString())
    return tmp_path


# Commands

_WRONG = (
    r"No such (?:command|option) '([^']+)'",
    r"there is no (?:backend|front-end) '([^']+)'",
    r"has no (?:option|layer) '([^']+)'",
    r"got '([^']+)'",
)


def wrong_word(message: str) -> str:
    """The word that a message does not accept."""
    return next(found[1] for text in _WRONG if (found := re.search(text, message)))


def replaced(words: list[str], wrong: str, right: str) -> list[str]:
    """A command line with another word or part of a word, from its end, where options are."""
    place = max(index for index, word in enumerate(words) if wrong in word)
    return [*words[:place], words[place].replace(wrong, right, 1), *words[place + 1 :]]


def without(words: list[str], flag: str) -> list[str]:
    """A command line without an option and its value."""
    place = words.index(flag)
    has_value = place + 1 < len(words) and not words[place + 1].startswith("-")
    return words[:place] + words[place + 1 + has_value :]


def proposed(words: list[str], message: str) -> list[str]:
    """Replace the wrong word by what the message supposes to be meant."""
    found = re.search(r"Did you mean '([^']+)'\?", message)
    assert found is not None
    return replaced(words, wrong_word(message), found[1])


def first_expected(words: list[str], message: str) -> list[str]:
    """Replace the wrong word by the first of the expected ones."""
    found = re.search(r"Expected (?:one of )?'?([^',; ]+)", message)
    assert found is not None
    return replaced(words, wrong_word(message), found[1])


def number_in_range(words: list[str], message: str) -> list[str]:
    """Replace a number by the least of the range that the message states."""
    found = re.search(r"number (?:of|from|above) (\d+)", message)
    assert found is not None
    number = int(found[1]) + ("above" in found[0])
    flag = re.search(r"--[a-z-]+", message)
    assert flag is not None
    return [*without(words, flag[0]), flag[0], str(number)]


def written_anew(words: list[str], message: str) -> list[str]:
    """Give the option as the message writes it, in place of the wrong one, if there is one."""
    found = re.search(
        r"(?:Write|for example with) ((--[a-z-]+) (?:'[^']+'|[^\s']+?))\.?(?: |$)", message
    )
    assert found is not None
    others = without(words, found[2]) if found[2] in words else words
    return [*others, *shlex.split(found[1])]


def left_out(words: list[str], message: str) -> list[str]:
    """Leave out the option, or the word, that the message is about."""
    extra = re.search(r"extra argument \(([^)]+)\)", message)
    if extra is not None:
        return [word for word in words if word != extra[1]]
    flag = re.search(r"Leave (--[a-z-]+) out", message) or re.search(r"(--[a-z-]+)", message)
    assert flag is not None
    return without(words, flag[1])


def with_folder(words: list[str], message: str) -> list[str]:
    """Make the folder that is missing."""
    found = re.search(r"there is no folder '([^']+)'. Make it", message)
    assert found is not None
    Path(found[1]).mkdir(parents=True)
    return words


def to_another_name(words: list[str], message: str) -> list[str]:
    """Write to a file with another name."""
    found = re.search(r"(--[a-z-]+) (\S+): .*give another name to write to", message)
    assert found is not None
    flags = {found[1], "-o" if found[1] == "--output" else found[1]}
    place = max(index for index, word in enumerate(words) if word in flags) + 1
    suffix = ".html" if words[0] == "report" else ".armpy"
    return [*words[:place], f"another{suffix}", *words[place + 1 :]]


def to_expected_name(words: list[str], message: str) -> list[str]:
    """Write to a file or folder of the name that the message proposes."""
    found = re.search(r"(?:Name it|Write) (\S+?)(?:\.| for) ", message + " ")
    assert found is not None
    place = max(words.index(flag) for flag in ("-o", "--output") if flag in words) + 1
    return [*words[:place], found[1], *words[place + 1 :]]


def another_choice(words: list[str], message: str) -> list[str]:
    """Give the option that the message offers in place of what is missing."""
    found = re.search(r"or choose (--[a-z-]+) ([a-z0-9]+)", message)
    assert found is not None
    return [*words, found[1], found[2]]


Remedy = Callable[[list[str], str], list[str]]

COMMANDS: list[tuple[str, Remedy]] = [
    ("runn m.tflite", proposed),
    ("inspct m.tflite", proposed),
    ("compil m.tflite -o x.armpy", proposed),
    ("cache lst", proposed),
    ("doctr --help", proposed),
    ("backnds", proposed),
    ("quantise open.onnx --help", proposed),
    ("reprot --help", proposed),
    ("run m.tflite --backens CpuRef", proposed),
    ("inspect m.tflite --layrs", proposed),
    ("compile m.tflite --outptu x.armpy", proposed),
    ("run m.tflite --backends CpuReff", proposed),
    ("diff m.tflite --backend CpuReff", proposed),
    ("run m.tflite --on-fallback eror", proposed),
    ("run m.tflite --code nevr", proposed),
    ("run open.onnx --shape x=1,1,8 --spread rws", proposed),
    ("run m.tflite --isolation nne", proposed),
    ("run m.tflite --front-end tflit", proposed),
    ("run m.tflite --front-end-option foo=1", proposed),
    ("run m.tflite --backends Npu", first_expected),
    ("run m.tflite --signature nope", first_expected),
    ("compile m.tflite --target nope -o x.armpy", first_expected),
    ("quantize open.onnx -o q.tflite --scheme flot16 --shape x=1,1,8", proposed),
    ("run m.tflite --input @one", first_expected),
    ("run m.tflite --num-threads 0", number_in_range),
    ("run m.tflite --num-threads x", number_in_range),
    ("run m.tflite --seed x", number_in_range),
    ("run m.tflite --top x", number_in_range),
    ("run open.onnx --shape x=1,1,8 --batch 0", number_in_range),
    ("profile m.tflite --runs 0", number_in_range),
    ("inspect m.tflite --num-threads 0", number_in_range),
    ("run m.tflite --input image=@ones", written_anew),
    ("run open.onnx --shape x=1,1,8 --input stat=1", proposed),
    ("run open.onnx", written_anew),
    ("compile open.onnx -o x.armpy", written_anew),
    ("profile open.onnx", written_anew),
    ("diff open.onnx --backend CpuRef", written_anew),
    ("run m.tflite --batch 2", left_out),
    ("run m.tflite --size 30x30", left_out),
    ("run m.tflite --backend-option CpuRef.foo=1", left_out),
    ("run m.tflite --profile-format x", left_out),
    ("cache clear --foo", left_out),
    ("devices nope", left_out),
    ("backends CpuReff", left_out),
    ("compile m.tflite -o new/x.armpy", with_folder),
    ("profile m.tflite -o new/x.json", with_folder),
    ("compile m -o m", to_another_name),
    ("report m --runs 1 -o m", to_another_name),
    ("compile m.tflite -o m.tflite", to_expected_name),
    ("report m.tflite --runs 1 -o page.pdf", to_expected_name),
    ("run m.tflite --output out.txt", to_expected_name),
    ("quantize open.onnx -o q.tflite --shape x=1,1,8", another_choice),
    ("report m.tflite --runs 1 --float-model m.tflite --no-accuracy", left_out),
]
"""Commands with a mistake, and how each message's remedy is read."""


@pytest.mark.parametrize(("line", "remedy"), COMMANDS, ids=[line for line, _ in COMMANDS])
def test_the_remedy_of_a_commands_error_helps(line: str, remedy: Remedy, cli: Cli) -> None:
    words = shlex.split(line)
    code, _, message = cli(*words)
    assert code != 0, "there is no mistake"
    corrected = remedy(words, " ".join(message.split()))
    code, _, error = cli(*corrected)
    assert code == 0, f"{message}is followed by: armpy {shlex.join(corrected)}\n{error}"


@pytest.mark.parametrize(
    "line",
    [
        "run m.tflite --affinity nope=CpuRef",
        "run m.tflite --shape nope=1,2",
        "run m.tflite --trusted-key nope.pub",
        pytest.param("conformance CpuRef --filter no/such/case", marks=pytest.mark.slow),
    ],
)
def test_the_command_that_a_message_names_is_run(line: str, cli: Cli) -> None:
    message = " ".join(cli(*line.split())[2].split())
    found = re.search(r"'armpy ([^']+)'", message)
    assert found is not None
    code, out, error = cli(
        *found[1].replace("MODEL", "m.tflite").replace("BACKEND", "CpuRef").split()
    )
    assert (code, error) == (0, "")
    expected = re.search(r"Expected (?:the name of a layer \()?'([^']+)'", message)
    assert expected is None or expected[1] in out


def test_the_help_that_messages_name_is_there(cli: Cli) -> None:
    count = 0
    for line, _ in COMMANDS:
        words = shlex.split(line)
        found = re.search(r"See armpy ([a-z -]*--help)\.", cli(*words)[2])
        if found is not None and "--help" not in words:
            count += 1
            cli.out(*found[1].split())
    assert count > 20


# Python


def with_proposal(arguments: Mapping[str, object], message: str) -> Mapping[str, object]:
    """Replace the wrong text by what the message supposes to be meant."""
    found = re.search(r"Did you mean '([^']+)'\?", message)
    assert found is not None
    return replaced_value(arguments, wrong_word(message), found[1])


def with_expected(arguments: Mapping[str, object], message: str) -> Mapping[str, object]:
    """Replace the wrong text by the first of the expected ones."""
    found = re.search(r"Expected (?:one of )?'?([^',;. ]+)", message)
    assert found is not None
    return replaced_value(arguments, wrong_word(message), found[1])


def replaced_value(arguments: Mapping[str, object], wrong: str, right: str) -> Mapping[str, object]:
    """The same arguments with a text in place of another one."""
    text = repr(dict(arguments))
    assert repr(wrong) in text
    replaced_arguments: Mapping[str, object] = ast.literal_eval(
        text.replace(repr(wrong), repr(right))
    )
    return replaced_arguments


def least_number(arguments: Mapping[str, object], message: str) -> Mapping[str, object]:
    """Take the least number of the range that the message states."""
    found = re.search(r"^(\w+): .*number of (\d+)", message)
    assert found is not None
    return {**arguments, found[1]: int(found[2])}


def as_written(arguments: Mapping[str, object], message: str) -> Mapping[str, object]:
    """Take the value that the message writes, for the argument that it names."""
    name = message.partition(":")[0]
    found = re.search(r"(?:Write (.*?)|Set \w+=(\S+).*)\.?$", message)
    assert found is not None
    return {**arguments, name: ast.literal_eval(found[1] or found[2])}


def as_rewritten(arguments: Mapping[str, object], message: str) -> Mapping[str, object]:
    """Take the argument as the message writes it, with its name."""
    found = re.search(r": (\w+)=(\S+ \S+)\.$", message)
    assert found is not None
    return {**arguments, found[1]: ast.literal_eval(found[2])}


def without_argument(arguments: Mapping[str, object], message: str) -> Mapping[str, object]:
    """Leave out the argument that the message is about."""
    assert re.search(r"[Ll]eave (it|the argument|the signature) out", message)
    about = next(name for name in arguments if name.partition("_")[0] in message)
    return {name: value for name, value in arguments.items() if name != about}


CALLS: list[
    tuple[dict[str, object], Callable[[Mapping[str, object], str], Mapping[str, object]]]
] = [
    ({"backends": ["CpuReff"]}, with_proposal),
    ({"backends": ["Npu"]}, with_expected),
    ({"backends": "CpuRef"}, as_written),
    ({"backends": []}, without_argument),
    ({"on_fallback": "eror"}, with_proposal),
    ({"preference": "fastst"}, with_proposal),
    ({"compile": "wai"}, with_proposal),
    ({"code": "nevr"}, with_proposal),
    ({"front_end": "tflit"}, with_proposal),
    ({"isolation": "nne"}, with_proposal),
    ({"affinity": {"*": "Cpu"}}, with_proposal),
    ({"affinity": {"*": "Npu"}}, with_expected),
    ({"affinity": {"CpuRef": "*"}}, as_rewritten),
    ({"front_end_options": {"stand_in": True}}, with_proposal),
    ({"signature": "nope"}, without_argument),
    ({"num_threads": 0}, least_number),
]
"""Arguments of `armpy.load` with a mistake, and how each message's remedy is read."""


@pytest.mark.parametrize(("arguments", "remedy"), CALLS, ids=[str(row[0]) for row in CALLS])
def test_the_remedy_of_an_error_of_load_helps(
    arguments: dict[str, object],
    remedy: Callable[[Mapping[str, object], str], Mapping[str, object]],
) -> None:
    with pytest.raises(ArmpyError) as caught:
        armpy.load("m.tflite", **arguments)  # type: ignore[arg-type]
    corrected = remedy(arguments, str(caught.value))
    armpy.load("m.tflite", **corrected).close()  # type: ignore[arg-type]


def test_the_remedies_of_a_calls_errors_help() -> None:
    with armpy.load("m.tflite") as model:
        with pytest.raises(ArmpyError) as caught:
            model(np.zeros((1, 8, 8, 1), np.int8))
        shape = re.search(
            r"Expected (\([\d, ]+\)); .*an array or a shape as expected", str(caught.value)
        )
        assert shape is not None
        array = np.zeros(ast.literal_eval(shape[1]), np.int32)
        with pytest.raises(ArmpyError) as caught:
            model(array)
        dtype = re.search(r"Convert it to (\w+)", str(caught.value))
        assert dtype is not None
        array = array.astype(dtype[1])
        (answer,) = model.run({"serving_default_image:0": array}).values()
        with pytest.raises(ArmpyError) as caught:
            model.run({"image": array})
        inputs = re.search(r"Pass (\{.*\})\.$", str(caught.value))
        assert inputs is not None
        (named,) = model.run(eval(inputs[1], {"array": array})).values()
        np.testing.assert_array_equal(named, answer)
        with pytest.raises(ArmpyError, match=r"Call model\.run to give inputs by name"):
            model({"serving_default_image:0": array})


def test_the_remedy_of_an_open_size_helps_in_python() -> None:
    from armpy.model.open_shapes import input_shapes

    with armpy.load("open.onnx") as model:
        shapes = re.search(r"for example with (shapes=\{.*\})$", input_shapes(model, {}).fix)
        assert shapes is not None
        arguments = eval(f"dict({shapes[1]})", {})
        model.prepare(input_shapes(model, arguments["shapes"]).by_name)


def test_a_wrong_remedy_is_noticed(cli: Cli) -> None:
    message = "No such option '--backens'. Did you mean '--backend-optio'? See armpy run --help."
    code, _, error = cli(*proposed(["run", "m.tflite", "--backens", "CpuRef"], message))
    assert (code, "No such option" in error) == (2, True)
