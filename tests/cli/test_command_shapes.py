"""Every command takes shapes for a model with open sizes in the same way."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import numpy as np
import pytest

import armpy
from armpy.cli.app import app
from armpy.cli.inputs.options import input_notes
from armpy_testing.command_line import Cli
from armpy_testing.models.onnx_texts import HEAD

needed = ("onnx.parser", "click", "rich", "jinja2")
for module in (*needed, "armpy_onnx", "armpy_tools", "armpy_conformance", "armpy_serving"):
    pytest.importorskip(module)

MODEL = """graph (float[batch, 1, length] x, float[batch, 1, 1] state) => (float[b, 1, l] y)
    <float[1, 1, 3] w = {1.0, 2.0, 3.0}> {
    p = Conv (x, w) y = Add (p, state)
}"""
CPU_REF = ("--backends", "CpuRef")
SHAPE = ("--shape", "x=2,1,8")
"""The shape of `state` follows: both inputs have the dimension `batch`."""

MISSING = "The model takes several sizes; choose one, for example with --shape x=1,1,128"

QUICK = ("--time", "0.01", "--processes", "1")
ACCURACY = ("--backend", "CpuRef", "--samples", "1", "--time", "0")

slow = pytest.mark.slow

COMMANDS = [
    pytest.param(("run", "{model}", *CPU_REF), id="run"),
    pytest.param(("profile", "model", "{model}", *CPU_REF, "--runs", "1"), id="profile"),
    pytest.param(("compile", "{model}", *CPU_REF, "-o", "x.armpy"), id="compile"),
    pytest.param(("diff", "{model}", "--backend", "CpuRef"), id="diff"),
    pytest.param(("diff", "{model}", "{model}"), id="diff of files"),
    pytest.param(("report", "{model}", *CPU_REF, "--runs", "1"), id="report", marks=slow),
    pytest.param(("benchmark", "{model}", *CPU_REF, *QUICK), id="benchmark", marks=slow),
    pytest.param(("conformance", "accuracy", "{model}", *ACCURACY), id="accuracy", marks=slow),
]
"""Commands that need the shapes."""

OTHERS = [
    pytest.param(("inspect", "{model}", *CPU_REF), id="inspect"),
    pytest.param(("report", "{model}", *CPU_REF, "--svg", "x.svg"), id="report --svg"),
    pytest.param(("tune", "{model}", *CPU_REF), id="tune"),
    pytest.param(("kernels", "list", "{model}"), id="kernels list", marks=slow),
    pytest.param(("export-triton", "{model}", *CPU_REF, "-o", "models"), id="export-triton"),
]
"""Commands that do something without the shapes as well."""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "open.onnx"
    onnx = pytest.importorskip("onnx")
    path.write_bytes(onnx.parser.parse_model(HEAD + MODEL).SerializeToString())
    return path


def filled(command: tuple[str, ...], model: Path) -> list[str]:
    return [word.format(model=model) for word in command]


@pytest.mark.parametrize("command", [*COMMANDS, *OTHERS])
def test_the_shape_of_one_input_is_enough_where_names_say_the_others(
    cli: Cli, model: Path, command: tuple[str, ...]
) -> None:
    code, out, err = cli(*filled(command, model), *SHAPE)
    # Exit status 1 of `accuracy`: CpuRef is judged by nothing but itself.
    assert code == (1 if "accuracy" in command else 0), out + err
    assert "FAILED" not in out
    assert MISSING not in out + err


def _takes(command: tuple[str, ...], option: str) -> bool:
    """Return whether a command of the list takes an option for inputs."""
    names = [word for word in command[:2] if not word.startswith(("{", "-"))]
    found: click.Command | None = app
    for name in names:
        assert isinstance(found, click.Group)
        _, found, _ = found.resolve_command(click.Context(found), [name])
    notes = None if found is None else input_notes(found)
    assert notes is not None
    return option in (*notes.taken, *notes.own)


@pytest.mark.parametrize("command", [*COMMANDS, *OTHERS])
@pytest.mark.parametrize(
    ("option", "given"), [("input", ("--input", "state=@ones")), ("batch", ("--batch", "2"))]
)
def test_shapes_go_together_with_the_other_options(
    cli: Cli, model: Path, command: tuple[str, ...], option: str, given: tuple[str, ...]
) -> None:
    if not _takes(command, option):
        pytest.skip("the command says why it lacks the option")
    code, out, err = cli(*filled(command, model), *SHAPE, *given)
    assert code == 0, out + err
    assert "FAILED" not in out
    assert MISSING not in out + err


@pytest.mark.parametrize("command", COMMANDS)
def test_missing_shapes_are_one_error_with_the_option(
    cli: Cli, model: Path, command: tuple[str, ...]
) -> None:
    code, out, err = cli(*filled(command, model))
    assert code != 0
    # Tables of results break lines.
    assert MISSING in " ".join((out + err).split())


def test_an_example_of_a_shape_has_the_rows_that_the_call_says(model: Path, cli: Cli) -> None:
    err = cli.err("run", str(model), *CPU_REF, "--batch", "3", code=1)
    example = "--shape x=3,1,128"
    assert f"choose one, for example with {example}." in err
    assert cli("run", str(model), *CPU_REF, "--batch", "3", *example.split())[0] == 0


@pytest.mark.parametrize("command", [*COMMANDS, *OTHERS])
def test_an_input_that_there_is_not_is_refused_alike(
    cli: Cli, model: Path, command: tuple[str, ...]
) -> None:
    code, out, err = cli(*filled(command, model), "--shape", "stat=2,1,1")
    assert code != 0
    text = " ".join((out + err).split())
    assert "input 'stat': the model has no such input. Expected " in text
    assert "got 'stat'. Did you mean 'state'?" in text


def test_a_file_that_only_takes_the_shapes_says_so(cli: Cli, model: Path) -> None:
    out = cli.out("compile", model, *CPU_REF, "-o", "x.armpy", *SHAPE)
    assert (
        "prepared only for these sizes of what the model leaves open: x (2, 1, 8), state (2, 1, 1)"
        in " ".join(out.split())
    )
    assert "other sizes" not in out
    with armpy.load("x.armpy", backends=["CpuRef"]) as compiled:
        x = np.arange(16, dtype=np.float32).reshape(2, 1, 8)
        y = compiled(x, np.full((2, 1, 1), 0.5, np.float32))
    # 1 x[i] + 2 x[i + 1] + 3 x[i + 2] of consecutive numbers
    np.testing.assert_array_equal(y, 6 * x[:, :, :6] + 8.5)


def test_another_shape_than_that_of_a_compiled_model_names_the_remedy(
    cli: Cli, model: Path
) -> None:
    cli.out("compile", model, *CPU_REF, "-o", "x.armpy", *SHAPE)
    assert cli("run", "x.armpy", *CPU_REF, *SHAPE)[0] == 0
    assert cli.err("run", "x.armpy", *CPU_REF, "--shape", "x=2,1,4").endswith(
        "--shape x: the model has fixed the input's shape. Expected (2, 1, 8); got (2, 1, 4). "
        "Leave it out; where the file is a compiled model, compile the original one again with "
        "this --shape.\n"
    )


def test_several_sets_are_refused_where_a_file_only_takes_one(cli: Cli, model: Path) -> None:
    sets = (*SHAPE, "--shape", "x=1,1,8")
    err = cli.err("compile", model, *CPU_REF, "-o", "x.armpy", *sets)
    assert "one set of shapes only" in err
    assert "Got 2 sets. Write a file for each of them." in err


@pytest.mark.slow
def test_packs_of_kernels_are_built_for_the_shapes(cli: Cli, model: Path) -> None:
    pytest.importorskip("numba")
    command = ("kernels", "build", model, "--backends", "NumbaAcc", "-o", "packs")
    assert MISSING in cli.err(*command, code=1)
    code, out, err = cli(*command, *SHAPE, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["packs"][0]["kernels"] > 0


def test_the_proposed_shape_is_one_that_the_model_takes(cli: Cli, model: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pooled = """graph (float[batch, 1, length] x) => (float[b, 1, l] y) {
        y = AveragePool <kernel_shape = [200]> (x)
    }"""
    model.write_bytes(onnx.parser.parse_model(HEAD + pooled).SerializeToString())
    for given in ((), ("--shape", "x=1,1,128")):
        error = cli.err("run", model, *CPU_REF, *given, code=1)
        proposed = re.search(r"for example with (--shape \S+)\.$", error.strip())
        assert proposed is not None, error
        assert proposed[1] == "--shape x=1,1,256"
        cli.out("run", model, *CPU_REF, *proposed[1].split())
