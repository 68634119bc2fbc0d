"""The ``armpy`` command, called in this process."""

from __future__ import annotations

import json
from typing import Any  # JSON documents

import pytest

from armpy.cli.__main__ import main


class Cli:
    """Calls the command and reads its output."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        self._capsys.readouterr()
        code = main([str(argument) for argument in arguments])
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
