"""Servers for the tests of this folder: Triton's own, where its wheel is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.triton_server import TritonServer, find_server

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
