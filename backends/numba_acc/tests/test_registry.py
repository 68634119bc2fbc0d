from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from importlib import import_module

import armpy_numba_acc.lowering
import pytest
from armpy_numba_acc.program.registry import lowering_of

from armpy import ops


def test_every_modules_lowerings_are_found_and_no_two_modules_have_the_same() -> None:
    modules = [
        import_module(f"armpy_numba_acc.lowering.{name}")
        for _, name, _ in pkgutil.iter_modules(armpy_numba_acc.lowering.__path__)
    ]
    tables = [module.LOWERINGS for module in modules if hasattr(module, "LOWERINGS")]
    lowerings = [item for table in tables for item in table.items()]
    assert len(lowerings) == len(dict(lowerings)) > 40
    for kind, lowering in lowerings:
        assert lowering_of(object.__new__(kind)) is lowering


@pytest.mark.slow
def test_an_operation_imports_its_module_alone() -> None:
    code = (
        "import sys; from armpy import ops; from armpy_numba_acc.program import registry;"
        "registry.lowering_of(ops.TopkV2());"
        "print(*sorted(n for n in sys.modules if n.startswith('armpy_numba_acc.lowering.')))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert "armpy_numba_acc.lowering.ordering" in done.stdout.split()
    assert "armpy_numba_acc.lowering.weighted" not in done.stdout.split()


def test_an_operation_that_only_has_the_name_is_not_lowered() -> None:
    class Softmax(ops.Rank):
        pass

    assert lowering_of(ops.Softmax()) is not None
    assert lowering_of(Softmax()) is None
    assert lowering_of(ops.HashtableLookup()) is None
