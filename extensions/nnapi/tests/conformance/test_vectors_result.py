"""Results that say whether random models have shown anything about a backend."""

from __future__ import annotations

from armpy_conformance import CaseResult, Outcome
from armpy_nnapi.conformance.random_graphs.runner import LEAST_SHARE
from armpy_nnapi.conformance.vectors.runner import VectorsResult


def models(num_run: int, claimed: int = 1) -> VectorsResult:
    """Results of 1,000 models, in some of which a layer of several that are claimed runs."""
    kind = ("Add FLOAT32",)
    ran = CaseResult("x", "Add", "FLOAT32", Outcome.PASSED, "", kind * claimed, kind)
    other = CaseResult("x", "Add", "FLOAT32", Outcome.UNSUPPORTED)
    results = (ran,) * num_run + (other,) * (1000 - num_run)
    return VectorsResult("Vendor", "", "2.6", results, least_share=LEAST_SHARE)


def test_random_models_that_hardly_touch_the_backend_fail_the_run() -> None:
    (text,) = models(3).shortcomings
    assert text.startswith("layers ran on Vendor in 3 of 1000 models: this proves little about it")
    assert not models(3).is_passed
    assert models(10).is_passed


def test_a_backend_that_runs_little_of_its_claims_fails_the_run() -> None:
    (text,) = models(100, claimed=11).shortcomings
    assert text.startswith("Vendor runs 9.1% of the layers that it claims. Expected at least 10%")
    assert models(100, claimed=10).is_passed
