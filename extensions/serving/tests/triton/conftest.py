"""Triton's own server, where its wheel is installed, and a stand-in for its Python module."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType

import pytest

from . import triton_utilities
from .triton_server import TritonServer, find_server

MODULES = ("python_model", "tensors", "metrics_reporter", "steps")

Start = Callable[..., TritonServer]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers of a folder of models; skips where there is none, saying so."""
    pytest.importorskip("tritonclient.grpc", reason="tritonclient[all] is not installed")
    if find_server() is None:
        pytest.skip("nvidia-pytriton is not installed, or not for this Python")
    with ExitStack() as stack:

        def started(repository: Path, *options: str, **named: object) -> TritonServer:
            repository.mkdir(exist_ok=True)
            server = TritonServer(repository, tmp_path, *options, **named)  # type: ignore[arg-type]
            return stack.enter_context(server)

        yield started


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The modules that import the server's, with a stand-in for it."""
    names = [f"armpy_serving.triton.{name}" for name in MODULES]
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", triton_utilities.utilities())
    triton_utilities.MetricFamily.made.clear()
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module(names[0])
    for name in names:
        sys.modules.pop(name, None)
