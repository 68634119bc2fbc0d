"""Backends of operations alone whose outputs' shapes depend on values."""

from __future__ import annotations

import pytest

from armpy import ops
from armpy.backend import Capabilities, Capability
from armpy_conformance import Outcome, run_conformance
from armpy_conformance.cases import operation_cases
from armpy_testing.backends.scripted_backend import ScriptedBackend, declaration

from .kit_runs import options_for

pytestmark = pytest.mark.slow

OPEN = sorted(
    {
        case.operation.name
        for case in operation_cases()
        if not all(info.is_fully_shaped for info in case.outputs)
    }
)


@pytest.mark.sampled(13)
@pytest.mark.parametrize("name", OPEN)
def test_a_correct_backend_of_open_outputs_passes_alone(name: str) -> None:
    capabilities: Capabilities = {
        Capability.NON_CONST_WEIGHTS: True,
        Capability.DYNAMIC_OUTPUT_SHAPES: True,
    }
    backend = ScriptedBackend(
        operations=[getattr(ops, name)],
        declared=declaration(capabilities=capabilities),
        records=False,
    )
    result = run_conformance(
        "Scripted", runtime_options=options_for(backend), filter=["contract/", f"{name}/"]
    )
    assert [f"{r.case}: {r.text}" for r in result.problems] == []
    ran = [r for r in result.results if r.case.startswith(f"{name}/")]
    assert Outcome.PASSED in {r.outcome for r in ran}
    runtimes = {r.case: r.outcome for r in result.results}
    assert runtimes["contract/lifecycle/several-networks-at-once"] is Outcome.PASSED
