"""Faults that vendors make, which nothing but the cases of what comes together seldom finds."""

from __future__ import annotations

import pytest

from armpy_conformance import Outcome
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.cases import seldom
from armpy_conformance.judge import judge
from tests.support.lying_backends import options_for
from tests.support.planted_faults import Fused, Plain
from tests.support.vendor_numbers import NUMBERS
from tests.support.vendor_quantized import INT8

CASES = {case.id: case for template in seldom.case_templates() for case in template.cases()}

FOUND = {
    ("plain", "binary/middle-axis"): "ElementwiseBinary/sub-middle/float32",
    ("plain", "binary/quadrant"): "ElementwiseBinary/atan2-signs/float32",
    ("plain", "binary/zero-has-no-sign"): "ElementwiseBinary/div-zeros/float32",
    ("plain", "conv/even-window"): "Convolution2d/even/float32",
    ("plain", "conv/window-larger-than-image"): "Convolution2d/wider-than-image/float32",
    ("plain", "matmul/batch-of-one"): "BatchMatMul/batch-of-one/float32",
    ("plain", "pad/last-axis-behind"): "Pad/last-behind/float32",
    ("plain", "norm/difference-of-means"): "LayerNormalization/far-from-0/float32",
    ("fused", "int8/zero-scale-channel"): "Convolution2d/no-scale/qasymm_s8-qsymm_s8-signed32",
    ("fused", "int8/relu-at-stored-0"): "ElementwiseBinary/relu-at-lowest/qasymm_s8",
    ("fused", "int8/mean-of-many"): "Reduce/mean-of-many/qasymm_s8",
    ("fused", "tiles/1x1-with-stride"): "Convolution2d/one-element-stride/float32",
}
"""By shape and fault, the case that finds it."""


@pytest.mark.parametrize(("shape", "fault"), FOUND)
def test_a_fault_of_what_is_seldom_is_found(shape: str, fault: str) -> None:
    backend = Plain(NUMBERS[fault]()) if shape == "plain" else Fused(INT8[fault]())
    subject = BackendUnderTest(backend.get_id(), options_for(backend))
    result = judge(subject, CASES[FOUND[shape, fault]])
    assert result.outcome is Outcome.FAILED, result.text


def test_an_honest_backend_passes() -> None:
    backend = Plain()
    subject = BackendUnderTest(backend.get_id(), options_for(backend))
    results = [judge(subject, case) for case in CASES.values()]
    assert [f"{r.case}: {r.text}" for r in results if r.outcome is not Outcome.PASSED] == []
