"""NNAPI's operations on 8-bit integers, and its hashes, against LiteRT where the two agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from armpy_nnapi import FuseCode, OperandCode, OperationCode, PaddingCode
from armpy_testing.models.tflite_writer import TfliteModel
from tests.differential.litert_oracle import litert_or_skip, run_litert
from tests.differential.nnapi_peers import (
    BOOL8,
    FLOAT32,
    INT32,
    PER_CHANNEL,
    QUANTIZED,
    SIGNED,
    SYMMETRIC,
    UNSIGNED,
    Array,
    Draw,
    Expected,
    Instance,
    Omitted,
    Tensor,
    boolean,
    check_instances,
    integer,
    integers,
    names,
    number,
)

litert_or_skip()

_O = OperationCode
TYPES = {
    FLOAT32: "FLOAT32",
    INT32: "INT32",
    BOOL8: "BOOL",
    UNSIGNED: "UINT8",
    SIGNED: "INT8",
    PER_CHANNEL: "INT8",
}
FUSED = {
    FuseCode.NONE: "NONE",
    FuseCode.RELU: "RELU",
    FuseCode.RELU1: "RELU_N1_TO_1",
    FuseCode.RELU6: "RELU6",
}
Options = Mapping[str, Any]  # Any: option values of many types


def run_operator(
    code: str,
    operands: Sequence[Tensor],
    output: Expected,
    options: Options | None = None,
    num_inputs: int = 1,
    version: int = 1,
) -> Array:
    """What LiteRT makes of operands of which the first ones are inputs."""
    model = TfliteModel()
    graph = model.subgraph()
    tensors = [
        graph.tensor(
            f"operand_{i}",
            operand.shape,
            TYPES[operand.code],
            scale=operand.scales or operand.scale or None,
            zero_point=operand.zero_point if operand.scale else None,
            axis=operand.channel_dim,
            data=None if i < num_inputs else operand.stored,
        )
        for i, operand in enumerate(operands)
    ]
    result = graph.tensor(
        "output",
        (1,),
        TYPES[output.code],
        scale=output.scale or None,
        zero_point=output.zero_point if output.scale else None,
    )
    graph.operator(code, tensors, [result], options=options, version=version)
    graph.inputs(*tensors[:num_inputs])
    graph.outputs(result)
    inputs = [operand.stored for operand in operands[:num_inputs]]
    (answer,) = run_litert(model.to_bytes(), inputs)
    return answer


def found(output: Expected, stored: Array) -> Expected:
    """LiteRT's output, which is to come out exactly."""
    return Expected(output.code, stored, output.scale, output.zero_point)


def fixed(kind: OperandCode, scale: float, unsigned: int, signed: int) -> Expected:
    """An output whose quantisation the operation says."""
    return Expected(kind, np.zeros(1), scale, signed if kind is SIGNED else unsigned)


PAIRS = (_O.ADD, _O.SUB, _O.MUL)


@pytest.mark.parametrize("code", PAIRS, ids=names)
def test_arithmetic(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(QUANTIZED)
        first, second = (draw.tensor(kind, shape) for shape in draw.broadcast_shapes())
        least = first.scale * second.scale if code is _O.MUL else 0.0
        output = draw.output(kind, np.array([-3.0, 3.0]), least)
        fuse = draw.pick(tuple(FuseCode))
        options = {"fused_activation_function": FUSED[fuse]}
        answer = run_operator(code.name, [first, second], output, options, 2)
        return Instance(code, [first, second, integer(fuse)], [found(output, answer)])

    check_instances(make)


def test_prelu() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(QUANTIZED)
        source = draw.tensor(kind, draw.shape(4))
        alpha = draw.tensor(kind, (1, 1, source.shape[3]), -1, 1)
        output = draw.output(kind, np.array([-3.0, 3.0]), max(source.scale, 0.02))
        answer = run_operator("PRELU", [source, alpha], output)
        return Instance(_O.PRELU, [source, alpha], [found(output, answer)])

    check_instances(make)


@pytest.mark.parametrize(
    "code",
    [_O.LOGISTIC, _O.TANH, _O.SOFTMAX, _O.L2_NORMALIZATION, _O.HARD_SWISH],
    ids=names,
)
def test_activations(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(QUANTIZED)
        rank = 4 if code is _O.L2_NORMALIZATION else None
        source, options = draw.tensor(kind, draw.shape(rank), -5, 5), {}
        arguments = []
        if code is _O.HARD_SWISH:
            output = draw.output(kind, np.array([-0.4, 5.0]), source.scale / 128)
        elif code in (_O.LOGISTIC, _O.SOFTMAX):
            output = fixed(kind, 1 / 256, 0, -128)
        else:
            output = fixed(kind, 1 / 128, 128, 0)
        if code is _O.SOFTMAX:
            beta = draw.number(0.2, 2)
            options, arguments = {"beta": beta}, [number(beta)]
        answer = run_operator(code.name, [source], output, options or None)
        return Instance(code, [source, *arguments], [found(output, answer)])

    check_instances(make)


def test_quantize() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(QUANTIZED)
        source = draw.tensor(FLOAT32, draw.shape())
        output = draw.output(kind, source.real)
        answer = run_operator("QUANTIZE", [source], output)
        return Instance(_O.QUANTIZE, [source], [found(output, answer)])

    check_instances(make)


@pytest.mark.parametrize("code", [_O.LESS, _O.LESS_EQUAL, _O.EQUAL, _O.NOT_EQUAL], ids=names)
def test_comparisons(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        kind, (first_shape, other) = draw.pick(QUANTIZED), draw.broadcast_shapes()
        first = draw.tensor(kind, first_shape)
        second = draw.tensor(kind, other, scale=first.scale, zero_point=first.zero_point)
        answer = run_operator(
            code.name, [first, second], Expected(BOOL8, np.zeros(1, bool)), None, 2
        )
        return Instance(code, [first, second], [Expected(BOOL8, answer)])

    check_instances(make)


def window(draw: Draw, kernel: Sequence[int]) -> tuple[PaddingCode, list[int], dict[str, Any]]:
    """Padding, strides (down, across), and TFLite's options that say so."""
    padding, strides = draw.pick(tuple(PaddingCode)), [draw.size(3), draw.size(3)]
    options = {"padding": padding.name, "stride_h": strides[0], "stride_w": strides[1]}
    return padding, strides, options


def image_of(draw: Draw, kind: OperandCode, kernel: Sequence[int]) -> Tensor:
    """An image that a window fits into."""
    height, width = (draw.size(k + 3, k) for k in kernel)
    return draw.tensor(kind, (draw.size(2), height, width, draw.size(3)))


def filter_of(draw: Draw, kind: OperandCode, shape: Sequence[int], channel_dim: int) -> Tensor:
    """Weights; signed ones without a zero point."""
    if kind is not PER_CHANNEL:
        return draw.tensor(kind, shape, -1, 1, zero_point=0 if kind is SIGNED else None)
    scales = tuple(float(np.float32(draw.number(0.004, 0.012))) for _ in range(shape[channel_dim]))
    return Tensor(kind, draw.tensor(SYMMETRIC, shape).stored, 0.0, 0, scales, channel_dim)


def bias_of(draw: Draw, source: Tensor, weights: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """A bias as NNAPI has it and as TFLite does, which says its scales."""
    stored = draw.tensor(INT32, (count,), -2000, 2000).stored
    scale = float(np.float32(source.scale) * np.float32(weights.scale))
    scales = tuple(source.scale * x for x in weights.scales)
    return Tensor(INT32, stored, scale), Tensor(INT32, stored, scale, 0, scales, 0)


WEIGHTED = ((UNSIGNED, UNSIGNED), (SIGNED, SIGNED), (SIGNED, PER_CHANNEL))


@pytest.mark.parametrize("code", [_O.CONV_2D, _O.DEPTHWISE_CONV_2D], ids=names)
def test_convolutions(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        kind, filter_kind = draw.pick(WEIGHTED)
        kernel = [draw.size(3), draw.size(3)]
        source, (padding, strides, options) = image_of(draw, kind, kernel), window(draw, kernel)
        depth, middle = source.shape[3], []
        if code is _O.CONV_2D:
            count = draw.size(3)
            weights = filter_of(draw, filter_kind, (count, *kernel, depth), 0)
        else:
            multiplier = draw.size(2)
            count, middle = depth * multiplier, [integer(multiplier)]
            weights = filter_of(draw, filter_kind, (1, *kernel, count), 3)
            options["depth_multiplier"] = multiplier
        bias, tflite_bias = bias_of(draw, source, weights, count)
        output = draw.output(kind, np.array([-6.0, 6.0]))
        fuse = draw.pick(tuple(FuseCode))
        options["fused_activation_function"] = FUSED[fuse]
        answer = run_operator(code.name, [source, weights, tflite_bias], output, options, 1, 3)
        inputs = [source, weights, bias, integer(padding), integer(strides[1]), integer(strides[0])]
        return Instance(code, [*inputs, *middle, integer(fuse)], [found(output, answer)])

    check_instances(make)


def test_fully_connected() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(QUANTIZED)
        depth, units = draw.size(6), draw.size(4)
        source = draw.tensor(kind, (draw.size(3), depth))
        weights = filter_of(draw, kind, (units, depth), 0)
        bias, tflite_bias = bias_of(draw, source, weights, units)
        output = draw.output(kind, np.array([-6.0, 6.0]))
        fuse = draw.pick(tuple(FuseCode))
        options = {"fused_activation_function": FUSED[fuse]}
        operands = [source, weights, tflite_bias]
        answer = run_operator("FULLY_CONNECTED", operands, output, options, 1, 4)
        inputs = [source, weights, bias, integer(fuse)]
        return Instance(_O.FULLY_CONNECTED, inputs, [found(output, answer)])

    check_instances(make)


@pytest.mark.parametrize("code", [_O.AVERAGE_POOL_2D, _O.MAX_POOL_2D, _O.L2_POOL_2D], ids=names)
def test_pooling(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(QUANTIZED)
        kind = FLOAT32 if code is _O.L2_POOL_2D else draw.pick((*QUANTIZED, FLOAT32))
        kernel = [draw.size(3), draw.size(3)]
        source, (padding, strides, options) = image_of(draw, kind, kernel), window(draw, kernel)
        fuse = draw.pick(tuple(FuseCode))
        options |= {"filter_height": kernel[0], "filter_width": kernel[1]}
        options["fused_activation_function"] = FUSED[fuse]
        output = Expected(kind, source.stored, source.scale, source.zero_point)
        answer = run_operator(code.name, [source], output, options)
        numbers = (padding, strides[1], strides[0], kernel[1], kernel[0], fuse)
        expected = found(output, answer if kind is not FLOAT32 else answer.astype(np.float64))
        return Instance(code, [source, *map(integer, numbers)], [expected])

    check_instances(make)


@pytest.mark.parametrize("code", [_O.RESIZE_BILINEAR, _O.RESIZE_NEAREST_NEIGHBOR], ids=names)
def test_resizing(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(QUANTIZED)
        source = draw.tensor(kind, (draw.size(2), draw.size(6), draw.size(6), draw.size(2)))
        sizes, align = [draw.size(8), draw.size(8)], draw.chance()
        half = not align and draw.chance()
        options = {"align_corners": align, "half_pixel_centers": half}
        output = Expected(kind, source.stored, source.scale, source.zero_point)
        answer = run_operator(code.name, [source, integers(sizes)], output, options, 1, 3)
        inputs = [source, integer(sizes[1]), integer(sizes[0])]
        inputs += [boolean(False), boolean(align), boolean(half)]
        expected = found(output, answer)
        if code is _O.RESIZE_BILINEAR and kind is SIGNED:
            # LiteRT's weights have 10 bits for this type, NNAPI's are float32.
            real = (answer.astype(np.float64) - source.zero_point) * source.scale
            expected = Expected(kind, real, source.scale, source.zero_point)
        return Instance(code, inputs, [expected])

    check_instances(make)


def test_lsh_projection() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick((FLOAT32, INT32, UNSIGNED))
        is_dense, num_bits = draw.chance(), draw.size(6)
        count = draw.size(4)
        seeds = draw.tensor(FLOAT32, (count, num_bits), -1, 1)
        items = draw.tensor(kind, draw.shape(draw.size(3), 6), -100, 100)
        weight = draw.tensor(FLOAT32, items.shape[:1], -1, 1)
        plain = Tensor(kind, items.stored)
        operands = [seeds, plain, weight] if is_dense else [seeds, plain]
        output = Expected(INT32, np.zeros(1, np.int32))
        options = {"type": "DENSE" if is_dense else "SPARSE"}
        answer = run_operator("LSH_PROJECTION", operands, output, options, len(operands))
        inputs = [seeds, items, weight if is_dense else Omitted(FLOAT32)]
        code = integer(2 if is_dense else 3)
        return Instance(_O.LSH_PROJECTION, [*inputs, code], [Expected(INT32, answer)])

    check_instances(make)
