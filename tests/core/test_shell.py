"""Words of commands arrive as they are."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from armpy.core.shell import shell_command


@pytest.mark.parametrize(
    "words",
    [
        ["a folder/model.tflite", "it's", "-x"],
        ["armpy[sign]", "x=1,224,224,3", "a&b", "(c)", "2>x"],
        ['say "yes"', "größe"],
    ],
)
def test_the_shell_hands_on_each_word_as_it_is(words: list[str]) -> None:
    command = shell_command([sys.executable, "-c", "import sys;print(ascii(sys.argv[1:]))", *words])
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert ast.literal_eval(done.stdout) == words
