"""CpuRef on the conformance kit's table of operations, before judges that are not CpuRef.

Each line of the table is judged as it is and once more with sizes, attributes and quantisations
made of chance, and the first line of each kind of layer so often that all its options have had
their turn, in all types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from armpy.ops.operation import Array
from armpy.ops.tolerance import TOLERANCES, Tolerance, compare
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_conformance import Case
from armpy_conformance.cases import all_case_templates
from armpy_conformance.definitions.expected import with_expected
from armpy_conformance.sampling.case_sampling import drawn, num_draws, roots
from armpy_conformance.sampling.case_template import CaseTemplate
from armpy_testing.litert_oracle import litert_or_skip
from armpy_testing.run_operation import run_operation
from tests.differential import litert_judge

NAMES = sorted({template.operation.name for template in all_case_templates()})


def instances(name: str, select: Callable[[CaseTemplate], CaseTemplate]) -> Iterator[Case]:
    """Cases of one operation, and others like them, of the types that a judge selects."""
    lines = [template for template in all_case_templates() if template.operation.name == name]
    for template in lines:
        yield from select(template).cases()
        yield from select(drawn(template, 1)).cases(1)
    for template in roots(lines):
        for seed in range(2, 2 + num_draws(template)):
            yield from select(drawn(template, seed)).cases(seed)


def run(case: Case) -> list[Array]:
    """What CpuRef makes of a case."""
    inputs = [None if item is None else (item.info, item.data) for item in case.inputs]
    return run_operation(case.operation, inputs, case.outputs)


Opinions = Iterable[tuple[object, Sequence[Array], Tolerance | None]]
"""What a judge calls a case, the outputs that it expects, how close to these is right (as near as
the type allows if it is not said)."""


def by_definition(case: Case) -> Opinions:
    """What an operation's description says, computed in float64 from it alone."""
    defined = with_expected(case)
    if defined.expected is not None:
        yield "the definition", defined.expected, None


def of_plain_types(template: CaseTemplate) -> CaseTemplate:
    """A line for types of which rounding does not decide."""
    if not template.shapes:
        return template
    return replace(
        template, types=lambda types: not types[0].is_quantized and template.types(types)
    )


@dataclass(frozen=True)
class Judge:
    """Sources of right answers, and the types of their instances."""

    select: Callable[[CaseTemplate], CaseTemplate]
    opinions: Callable[[Case], Opinions]
    skip: Callable[[], object] = lambda: None


JUDGES = {
    "definition": Judge(of_plain_types, by_definition),
    "litert": Judge(litert_judge.of_judged_types, litert_judge.opinions, litert_or_skip),
}


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("judge", JUDGES.values(), ids=JUDGES)
def test_the_judge_says_the_same(judge: Judge, name: str) -> None:
    judge.skip()
    judged = 0
    for case in instances(name, judge.select):
        results: list[Array] = []
        for opinion, expected, tolerance in judge.opinions(case):
            judged += 1
            results = results or run(case)
            for info, wanted, actual in zip(case.outputs, expected, results, strict=True):
                allowed = TOLERANCES[info.data_type] if tolerance is None else tolerance
                difference = compare(wanted, actual, info, allowed)
                assert difference is None, f"{opinion} for {case}: {difference}"
    if not judged:
        pytest.skip("the judge knows no such operation, or none without a state")


def test_sum_of_int8_is_the_sum_of_uint8_with_everything_shifted() -> None:
    """LiteRT's own sum of int8 is that of its optimised kernel, in float32."""
    lines = [template for template in all_case_templates() if "sum-wide" in template.label]
    for case in (case for seed in range(1, 20) for s in lines for case in drawn(s, seed).cases()):
        (item,) = case.inputs
        if item is not None and item.info.data_type is DataType.QASYMM_U8:
            data = (item.data.astype(np.int16) - 128).astype(np.int8)
            inputs = (replace(item, info=_signed(item.info), elements=data),)
            shifted = replace(case, inputs=inputs, outputs=tuple(map(_signed, case.outputs)))
            (unsigned,), (signed,) = run(case), run(shifted)
            np.testing.assert_array_equal(signed.astype(np.int16) + 128, unsigned)


def _signed(info: TensorInfo) -> TensorInfo:
    """The info of a uint8 tensor with 128 taken off all its elements."""
    quantization = Quantization.per_tensor(info.scale, info.zero_point - 128)
    return TensorInfo(info.shape, DataType.QASYMM_S8, quantization)
