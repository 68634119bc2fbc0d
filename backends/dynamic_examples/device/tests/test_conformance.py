"""armpy's conformance kit on the backend."""

from __future__ import annotations

from armpy.execution import RuntimeOptions
from armpy_conformance import run_conformance


def test_the_backend_keeps_to_the_contract_and_agrees_with_the_reference() -> None:
    result = run_conformance("ExampleDevice")
    assert result.is_passed, (result.shortcomings, result.problems)


def test_a_device_whose_memory_can_be_mapped_keeps_to_the_contract() -> None:
    options = RuntimeOptions(backend_options={"ExampleDevice": {"mappable_memory": True}})
    result = run_conformance("ExampleDevice", runtime_options=options, filter="contract/")
    assert result.problems == ()
