"""Plain runs of models, which no library parses: all is as if one did."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.cli.__main__ import main
from armpy.cli.plain_run import plain_run
from tests.support.fake_distributions import fake_site

for library in ("click", "rich", "PIL"):
    pytest.importorskip(library)

MODEL = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("prepared") / "digits.armpy"
    with armpy.load(MODEL) as model:
        model.save(path)
    return str(path)


@pytest.fixture(scope="module")
def array(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An ``--input``."""
    with armpy.load(prepared) as model:
        (spec,) = model.inputs
    path = tmp_path_factory.mktemp("inputs") / "image.npy"
    np.save(path, np.arange(256, dtype=np.uint8).view(np.int8).reshape(spec.shape))
    return f"{spec.name}={path}"


def printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("is_prepared", [True, False])
@pytest.mark.parametrize(
    "options", [[], ["--json"], ["--input"], ["--input", "--json"], ["--num-threads", "1"]]
)
def test_the_output_is_that_of_the_whole_command_line(
    options: list[str],
    is_prepared: bool,
    prepared: str,
    array: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["run", *options, prepared if is_prepared else str(MODEL)]
    if "--input" in options:
        arguments.insert(2, array)
    plain = printed(arguments, capsys)
    # Every option's default, said, leaves the command to the library.
    said = ["--top", "5", "--resize", "stretch", "--seed", "0", "--on-fallback", "allow"]
    said += ["--preference", "preference", "--code", "trusted"]
    assert not plain_run([*arguments, *said])
    whole = printed([*arguments, *said], capsys)
    if "--json" in options:
        documents = [json.loads(text) for text in (plain, whole)]
        for document in documents:
            del document["placement"]  # in words, with what was found in caches
        assert documents[0] == documents[1]
    else:
        assert plain.splitlines()[:-1] == whole.splitlines()[:-1]
        for text in (plain, whole):  # what was found in caches differs
            assert text.splitlines()[-1].startswith("placement: 10 layers: NumbaAcc 10; 1 part")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["run"],
        ["-v", "run", "{}"],
        ["run", "{}", "{}"],
        ["run", "{}", "--top", "3"],
        ["run", "{}", "--input"],
        ["run", "{}", "--input", "--json"],
        ["run", "{}", "--input=x=y.npy"],
        ["run", "{}", "--num-threads"],
        ["run", "{}", "--num-threads", "0"],
        ["run", "{}", "--num-threads", "two"],
        ["run", "{}", "--num-threads", "1", "--num-threads", "2"],
        ["run", "{}", "-v"],
        ["run", "--", "{}"],
        ["run", "{}", ""],
        ["inspect", "{}"],
        ["run", "nowhere.armpy"],
        ["run", str(MODEL.parent)],
    ],
)
def test_whatever_is_not_plain_is_left_to_the_library(arguments: list[str], prepared: str) -> None:
    assert not plain_run([argument.format(prepared) for argument in arguments])


def test_with_plugins_it_is_left_to_the_library(prepared: str, tmp_path: Path) -> None:
    with fake_site(tmp_path) as site:
        site.install_plugin("toy", "")
        assert not plain_run(["run", prepared])


def test_errors_are_told_as_by_the_whole_command_line(
    prepared: str, array: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.armpy"
    damaged.write_bytes(Path(prepared).read_bytes()[:-100])
    absent = array.partition("=")[0] + "=absent.npy"
    for arguments in (["run", str(damaged)], ["run", prepared, "--input", absent]):
        told = []
        for more in ([], ["--top", "5"]):
            code = main([*arguments, *more])
            told.append((code, capsys.readouterr()))
        assert told[0] == told[1]
        assert told[0][0] in (1, 2)
        assert told[0][1].err.startswith("armpy: error: ")


def test_no_library_of_the_command_line_is_imported(prepared: str) -> None:
    code = (
        f"import sys; from armpy.cli.__main__ import main; main(['run', {prepared!r}]);"
        "print(*[name for name in ('click', 'rich', 'PIL') if name in sys.modules], 'end')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "end"
