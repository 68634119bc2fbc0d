"""armpy's conformance kit on the backend."""

from __future__ import annotations

from armpy.testing import run_conformance


def test_the_backend_keeps_to_the_contract_and_agrees_with_the_reference() -> None:
    result = run_conformance("ExampleDevice")
    assert result.is_passed, (result.shortcomings, result.problems)
