"""Options of the conformance kit for pytest; found through the entry point ``pytest11``."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of ``pytest --pyargs armpy.testing``."""
    group = parser.getgroup("armpy", "conformance of an armpy backend")
    group.addoption(
        "--armpy-backend", metavar="ID", help="Id of the backend that armpy.testing is run on."
    )
    group.addoption(
        "--armpy-known-failures",
        metavar="FILE",
        help="Cases that may fail, one 'case id  # reason' per line; those that pass fail the run.",
    )
    group.addoption(
        "--armpy-dynamic-path",
        metavar="DIR",
        help="Directory with modules named <vendor>_<name>_backend.",
    )
