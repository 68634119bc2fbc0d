"""NNAPI's IF and WHILE against Python's, and its random numbers against their frequencies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from armpy_nnapi import Model, OperandCode, OperandType, OperationCode
from tests.differential.nnapi_peers import (
    BOOL8,
    FLOAT32,
    FLOATS,
    INT32,
    NUM_INSTANCES,
    Array,
    Draw,
    Instance,
    integer,
    integers,
    names,
    run,
    run_model,
)
from tests.differential.nnapi_peers import Expected as Output

_O = OperationCode
COUNTER = OperandType(INT32, (1,))
TRUTH = OperandType(BOOL8, (1,))


def graph(
    inputs: Sequence[OperandType], build: Callable[[Model, list[int]], Sequence[int]]
) -> Model:
    """A finished model of what a function adds to its inputs."""
    model = Model()
    indexes = [model.add_operand(kind) for kind in inputs]
    model.identify_inputs_and_outputs(indexes, build(model, indexes))
    model.finish()
    return model


def pair(model: Model, code: OperationCode, first: int, second: int, kind: OperandType) -> int:
    """The output of an arithmetic operation."""
    fuse = model.add_operand(OperandType(OperandCode.INT32))
    model.set_operand_value(fuse, 0)
    output = model.add_operand(kind)
    model.add_operation(code, [first, second, fuse], [output])
    return output


def reference_to(model: Model, value: Model) -> int:
    """An operand that stands for a model."""
    index = model.add_operand(OperandType(OperandCode.MODEL))
    model.set_operand_value_from_model(index, value)
    return index


ARITHMETIC: dict[OperationCode, Callable[[Array, Array], Array]] = {
    _O.ADD: np.add,
    _O.SUB: np.subtract,
    _O.MUL: np.multiply,
}


def _branch(code: OperationCode, kinds: Sequence[OperandType]) -> Model:
    """An operation on two inputs."""
    return graph(kinds, lambda model, i: [pair(model, code, i[0], i[1], kinds[0])])


def _choice(codes: Sequence[OperationCode], kinds: Sequence[OperandType]) -> Model:
    """One of two operations, as the first input says."""

    def whole(model: Model, inputs: list[int]) -> list[int]:
        branches = [reference_to(model, _branch(code, kinds)) for code in codes]
        result = model.add_operand(kinds[0])
        model.add_operation(_O.IF, [inputs[0], *branches, *inputs[1:]], [result])
        return [result]

    return graph([TRUTH, *kinds], whole)


def test_if_runs_the_branch_that_the_condition_says() -> None:
    for seed in range(NUM_INSTANCES):
        draw = Draw(seed)
        x = draw.tensor(FLOAT32, (draw.size(3), 2)).stored
        y = draw.tensor(FLOAT32, (1, 2)).stored
        codes, condition = [draw.pick(tuple(ARITHMETIC)) for _ in range(2)], draw.chance()
        model = _choice(codes, [OperandType(FLOAT32, array.shape) for array in (x, y)])
        (output,) = run_model(model, [np.array([condition]), x, y])
        np.testing.assert_allclose(output, ARITHMETIC[codes[not condition]](x, y), rtol=1e-6)


def _less(model: Model, first: int, second: int) -> int:
    """Whether one counter is below another."""
    is_less = model.add_operand(TRUTH)
    model.add_operation(_O.LESS, [first, second], [is_less])
    return is_less


def _loop(shape: tuple[int, ...], num_outputs: int) -> Model:
    """``while i < n: i, x = i + 1, x * w + b`` of i, x, n, w and b; outputs i, or i and x."""
    real = OperandType(FLOAT32, shape)
    state = [COUNTER, real, COUNTER, real, real]

    def body(model: Model, inputs: list[int]) -> list[int]:
        step = model.add_operand(COUNTER)
        model.set_operand_value(step, np.array([1], np.int32))
        counted = pair(model, _O.ADD, inputs[0], step, COUNTER)
        product = pair(model, _O.MUL, inputs[1], inputs[3], real)
        return [counted, pair(model, _O.ADD, product, inputs[4], real)]

    def whole(model: Model, inputs: list[int]) -> list[int]:
        condition = graph(state, lambda inner, i: [_less(inner, i[0], i[2])])
        references = [reference_to(model, condition), reference_to(model, graph(state, body))]
        outputs = [model.add_operand(kind) for kind in (COUNTER, real)[:num_outputs]]
        model.add_operation(_O.WHILE, [*references, *inputs], outputs)
        return outputs

    return graph(state, whole)


def test_while_runs_its_body_as_long_as_the_condition_holds() -> None:
    models: dict[tuple[tuple[int, ...], int], Model] = {}
    for seed in range(NUM_INSTANCES):
        draw = Draw(seed)
        shape, num_outputs = (draw.size(2), draw.size(2)), draw.size(2)
        key = (shape, num_outputs)
        models[key] = models.get(key) or _loop(shape, num_outputs)
        x, w, b = (draw.tensor(FLOAT32, shape, -1, 1).stored for _ in range(3))
        start, limit = draw.size(3, -3), draw.size(5, -3)
        counters = [np.array([n], np.int32) for n in (start, limit)]
        outputs = run_model(models[key], [counters[0], x, counters[1], w, b])
        while start < limit:
            start, x = start + 1, x * w + b
        assert outputs[0].tolist() == [start]
        if num_outputs > 1:
            np.testing.assert_allclose(outputs[1], x, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", FLOATS, ids=names)
def test_random_multinomial_draws_classes_as_often_as_they_are_likely(kind: OperandCode) -> None:
    num_samples = 2000
    for seed in range(NUM_INSTANCES):
        draw = Draw(seed)
        logits = draw.tensor(kind, (draw.size(2), draw.size(5)), -2, 2)
        seeds = integers([seed + 1, draw.size(1000)])
        output = Output(INT32, np.zeros((logits.shape[0], num_samples), np.int32))
        instance = Instance(_O.RANDOM_MULTINOMIAL, [logits, integer(num_samples), seeds], [output])
        (drawn,) = run(instance, draw)
        powers = np.exp(logits.real)
        likely = powers / powers.sum(1, keepdims=True)
        for row, wanted in zip(drawn, likely, strict=True):
            often = np.bincount(row, minlength=len(wanted)) / num_samples
            # Five standard deviations.
            allowed = 5 * np.sqrt(wanted * (1 - wanted) / num_samples) + 1e-9
            assert (np.abs(often - wanted) <= allowed).all(), (seed, often, wanted)
