"""Fixtures of the command's tests."""

from __future__ import annotations

import pytest

from armpy_testing.command_line import Cli


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys)
