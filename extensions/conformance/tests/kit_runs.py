"""Runs of the kit on backends made in tests."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.backend import IBackendInternal
from armpy.execution import RuntimeOptions
from armpy_conformance import CaseResult, ConformanceResult, run_conformance
from armpy_testing.backends.fake_backends import registry_of


def options_for(*backends: IBackendInternal) -> RuntimeOptions:
    """Options that find these backends, and CpuRef to fold with."""
    return RuntimeOptions(registry=registry_of(*backends))


def run(backend: IBackendInternal, filter: str | Sequence[str] = "/add/") -> ConformanceResult:
    """Run some cases on a backend."""
    return run_conformance(backend.get_id(), runtime_options=options_for(backend), filter=filter)


def run_one(backend: IBackendInternal, case: str = "ElementwiseBinary/add/float32") -> CaseResult:
    """Run one case on a backend."""
    (result,) = (r for r in run(backend, case).results if r.case == case)
    return result
