"""Faults that vendors make, which nothing but the cases of what comes together seldom finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any  # attributes of any operation

import numpy as np
import pytest

from armpy.ops import Padding
from armpy_conformance import Outcome
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.cases import seldom
from armpy_conformance.judge import judge

from .kit_runs import options_for
from .planted.shapes import Call, Fault, Fused, Plain

CASES = {case.id: case for template in seldom.case_templates() for case in template.cases()}


@dataclass
class Wrong(Fault):
    """Spoil the results of an operation where a condition holds."""

    name: str
    condition: Callable[[Call], bool]
    effect: Callable[[Call], object]

    def after(self, call: Call) -> None:
        if call.operation.name == self.name:
            with np.errstate(all="ignore"):
                if self.condition(call):
                    self.effect(call)


def attribute(call: Call, name: str) -> Any:
    return call.operation.attributes().get(name)


def shape(call: Call, index: int = 0) -> tuple[int, ...]:
    return np.asarray(call.inputs[index]).shape


def stretches(call: Call, axis: int) -> bool:
    """Whether the second operand is broadcast along an axis."""
    return len(shape(call, 1)) >= -axis and shape(call, 1)[axis] == 1 < call.outputs[0].shape[axis]


def is_padded(call: Call) -> bool:
    padding = attribute(call, "padding")
    return padding is Padding.SAME or (isinstance(padding, tuple) and bool(np.any(padding)))


def is_quantized(call: Call) -> bool:
    return call.results[0].quantization is not None and call.outputs[0].dtype.itemsize == 1


def has_scale_of_0(call: Call) -> bool:
    weights = call.infos[1]
    assert weights is not None
    return weights.quantization is not None and 0.0 in weights.quantization.scales


def spoil_last(call: Call) -> None:
    call.outputs[0].reshape(-1)[-1:].view(np.uint8)[-1] ^= 0x40


def write(function: Callable[[Any, Any], Any]) -> Callable[[Call], None]:
    """Write a function of both operands to the output."""

    def effect(call: Call) -> None:
        call.outputs[0][...] = function(*call.inputs)

    return effect


def subtract_means(call: Call) -> None:
    """Compute the variance as the difference of two means, in float32."""
    x = np.asarray(call.inputs[0], np.float32)
    mean = x.mean(-1, keepdims=True)
    variance = (x * x).mean(-1, keepdims=True) - mean * mean
    call.outputs[0][...] = (x - mean) / np.sqrt(variance + np.float32(attribute(call, "eps")))


FOUND: dict[str, tuple[Callable[[Call], bool], Callable[[Call], object]]] = {
    "ElementwiseBinary/sub-middle/float32": (
        lambda c: c.outputs[0].ndim >= 3 and stretches(c, -2) and not stretches(c, -1),
        spoil_last,
    ),
    "ElementwiseBinary/atan2-signs/float32": (
        lambda c: attribute(c, "operation").name == "ATAN2",
        write(lambda a, b: np.arctan(a / b)),
    ),
    "ElementwiseBinary/div-zeros/float32": (
        lambda c: attribute(c, "operation").name == "DIV",
        write(lambda a, b: a / (b + 0.0)),
    ),
    "Convolution2d/even/float32": (
        lambda c: attribute(c, "padding") is Padding.SAME and shape(c, 1)[1] % 2 == 0,
        spoil_last,
    ),
    "Convolution2d/wider-than-image/float32": (
        lambda c: is_padded(c) and shape(c, 1)[1] > shape(c)[1],
        spoil_last,
    ),
    "BatchMatMul/batch-of-one/float32": (
        lambda c: len(shape(c)) > 2 and shape(c)[0] == 1 < shape(c, 1)[0],
        spoil_last,
    ),
    "Pad/last-behind/float32": (
        lambda c: attribute(c, "pad_list")[-1][0] == 0 < attribute(c, "pad_list")[-1][1],
        spoil_last,
    ),
    "LayerNormalization/far-from-0/float32": (
        lambda c: attribute(c, "axes") == (-1,) and all(a is None for a in c.inputs[1:2]),
        subtract_means,
    ),
    # These are in programs of several layers.
    "Convolution2d/no-scale/qasymm_s8-qsymm_s8-signed32": (has_scale_of_0, spoil_last),
    "ElementwiseBinary/relu-at-lowest/qasymm_s8": (
        lambda c: is_quantized(c) and attribute(c, "activation").name == "RELU",
        lambda c: np.maximum(c.outputs[0], 0, out=c.outputs[0]),
    ),
    "Reduce/mean-of-many/qasymm_s8": (
        lambda c: is_quantized(c) and np.asarray(c.inputs[0]).size > 128 * c.outputs[0].size,
        spoil_last,
    ),
    "Convolution2d/one-element-stride/float32": (
        lambda c: shape(c, 1)[1:3] == (1, 1) and max(attribute(c, "stride")) > 1,
        spoil_last,
    ),
}
"""By the case that finds the fault: when the kernel is wrong, and its wrong output."""


@pytest.mark.parametrize(("found", "is_plain"), [(case, n < 8) for n, case in enumerate(FOUND)])
def test_a_fault_of_what_is_seldom_is_found(found: str, is_plain: bool) -> None:
    fault = Wrong(found.partition("/")[0], *FOUND[found])
    backend = Plain(fault) if is_plain else Fused(fault)
    subject = BackendUnderTest(backend.get_id(), options_for(backend))
    result = judge(subject, CASES[found])
    assert result.outcome is Outcome.FAILED, result.text


def test_an_honest_backend_passes() -> None:
    backend = Plain()
    subject = BackendUnderTest(backend.get_id(), options_for(backend))
    results = [judge(subject, case) for case in CASES.values()]
    assert [f"{r.case}: {r.text}" for r in results if r.outcome is not Outcome.PASSED] == []
