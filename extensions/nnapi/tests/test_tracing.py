"""Traces and logs of models, compilations and executions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from armpy.core.vlog import set_vlog
from armpy_nnapi import Compilation, ModelBuilder

from .nnapi_models import devices_of


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    yield
    set_vlog("")


def test_nnapi_logs_models_as_graphs_and_results_of_executions(
    caplog: pytest.LogCaptureFixture,
) -> None:
    set_vlog("model,compilation,execution,manager")
    with devices_of() as manager:
        builder = ModelBuilder(manager)
        x = builder.input(np.float32, (2,))
        compilation = Compilation(builder.finish(builder.relu(x)))
        compilation.finish()
        compilation(np.float32([1, 2]))  # type: ignore[arg-type]  # an array
        assert manager.devices
    messages = "\n".join(record.getMessage() for record in caplog.records)
    assert "digraph" in messages
    assert "RELU" in messages
    assert "Compilation.finish: 1 operations, all devices" in messages
    assert "an NNAPI execution came to NO_ERROR" in messages
    assert "device nnapi-reference, feature level" in messages
