"""Compiled parts of backends in processes of their own are kept by these processes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armpy import Runtime
from armpy.model import Model
from tests.support.networks import diamond, floats
from tests.support.scripted_backend import log_of, write_scripted


def test_a_worker_loads_what_an_earlier_one_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))
    # Workers write to armpy's cache only, where the system can confine them.
    (tmp_path / "cache").mkdir()
    log = tmp_path / "cache" / "log"
    how = f"ScriptedBackend('Npu', log={str(log)!r}, declared=declaration(keeps_programs=True))"
    options = replace(
        write_scripted(tmp_path / "modules", how), backends=["Npu", "CpuRef"], isolation="process"
    )
    for expected in (["optimize", "save"], ["check", "load"]):
        log.write_text("")
        with Runtime(options) as runtime:
            model = Model(diamond(), runtime)
            np.testing.assert_array_equal(model(floats(-1, 0, 2, 5)), floats(1, 1, 9, 21))
            assert model.placement is not None
            assert model.placement.layers_by_backend == {"Npu": 4}
        parts = ("optimize", "save", "check", "load")
        assert [method for method in log_of(log) if method in parts] == expected
