"""The ``armpy`` command, called in this process."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import Any  # JSON documents

import pytest

from armpy.cli.__main__ import main
from armpy.plugins import BackendRegistry


def armpy_command(arguments: Sequence[str]) -> int:
    """Run ``armpy`` with these arguments, as the installed script does.

    Output goes to `sys.stdout` and `sys.stderr`, where pytest's `capsys` reads it.

    Returns
    -------
    int
        The exit code: 0, 1 for a failure, 2 for a wrong command line.
    """
    return main(arguments)


def armpy_output(arguments: Sequence[str]) -> tuple[int, str]:
    """Run ``armpy`` with these arguments and capture both streams.

    Returns
    -------
    code : int
        As of `armpy_command`.
    output : str
        The text on stdout and stderr, in the order of writing.
    """
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        code = armpy_command(arguments)
    return code, output.getvalue()


def find_backends_in(registry: BackendRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have commands of this process find the backends of a registry, and no others."""
    monkeypatch.setattr(BackendRegistry, "discover", lambda options=None: registry)


class Cli:
    """Calls the command and reads its output."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        self._capsys.readouterr()
        code = armpy_command([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        return code, captured.out, captured.err

    def out(self, *arguments: object, code: int = 0) -> str:
        """The output on stdout, with nothing on stderr."""
        status, out, err = self(*arguments)
        assert (status, err) == (code, "")
        return out

    def err(self, *arguments: object, code: int = 2) -> str:
        """The output on stderr, with nothing on stdout."""
        status, out, err = self(*arguments)
        assert (status, out) == (code, ""), err
        return err

    def document(self, *arguments: object, code: int = 0) -> Any:
        """The JSON document on stdout."""
        status, out, err = self(*arguments, "--json")
        assert status == code, err
        return json.loads(out)
