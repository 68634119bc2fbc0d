"""A network for each family of kernels: most are cases of the conformance kit."""

from __future__ import annotations

import itertools
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TypeAlias

import numpy as np
from armpy_numba_acc import kernels
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel

from armpy import DataType, Network, Quantization, TensorInfo, ops
from armpy.graph import Graph
from armpy.ops.operation import Array
from armpy_conformance.case import Case
from armpy_conformance.cases import all_case_templates, by_hand

from .support import program_of

Given: TypeAlias = tuple[Network | Graph, dict[str, Array]]
"""A network, and inputs for it."""

_LSTM = "UnidirectionalSequenceLstm"
_LSTM_BYTES = "qasymm_s8-qsymm_s8-signed32-qasymm_s8-qsymm_s16"

_CASES: Mapping[str, str] = {
    "arg_extreme": "ArgMinMax/by-hand-first-of-equals/float32",
    "attention": "Attention/basic/float32",
    "block_product": "BlockwiseFullyConnected/4-bits-no-points/float32-unsigned8-float32",
    "convolution_dynamic": "Convolution2d/hybrid/float32-qsymm_s8-float32",
    "convolution_f32": "Convolution2d/by-hand-window-sums/float32",
    "convolution_i16": "Convolution2d/basic/qsymm_s16-qsymm_s8-signed32",
    "convolution_sums": "FullyConnected/by-hand-sums/qasymm_u8",
    "convolution_u8": "DepthwiseConvolution2d/one-element/qasymm_s8-qsymm_s8-signed32",
    "copy": "Reshape/by-hand-basic/float32",
    "cumulate": "Cumulate/sum-exclusive/float32",
    "depthwise_f32": "DepthwiseConvolution2d/by-hand-channels-apart/float32",
    "depthwise_u8": "DepthwiseConvolution2d/basic/qasymm_u8-signed32",
    "elementwise": "ElementwiseBinary/by-hand-arm-nn-sample/float32",
    "fill": "BatchMatMul/by-hand-basic/float32",
    "flip": "Activation/by-hand-relu-quantized/qasymm_s8",
    "gather_by_index": "Gather/by-hand-rows/float32",
    "gather_runs": "Resize/by-hand-nearest/float32",
    "grid_sample": "GridSample/linear-zeros/float32",
    "instance_normalization": "InstanceNormalization/basic/float32",
    "l2_normalization": "L2Normalization/rows/float32",
    "l2_normalization_bytes": "L2Normalization/rows/qasymm_s8",
    "layer_normalization": "LayerNormalization/basic/float32",
    "lookup": "Activation/by-hand-relu-quantized/qasymm_s8",
    "lstm_f32": f"{_LSTM}/projection/float32",
    "lstm_q8": f"{_LSTM}/basic/{_LSTM_BYTES}",
    "move_elements": "GatherElements/basic/float16-signed32",
    "move_runs": "TransposeConvolution2d/by-hand-blocks/float32",
    "move_tiles": "DepthwiseConvolution2d/multiplier-nchw/float32",
    "one_hot": "OneHot/basic/signed32-float16",
    "pad_image": "Convolution2d/by-hand-same-padding-counts/float32",
    "pooling_f32": "Pooling2d/by-hand-max/float32",
    "pooling_i16": "Pooling2d/average-pairs/qsymm_s16",
    "pooling_u8": "Pooling2d/max-stride-3/qasymm_s8",
    "product_i16": "BatchMatMul/basic/qsymm_s16",
    "quantize_blocks": "BlockwiseFullyConnected/quantized-input/float32-unsigned8-float32",
    "quantize_rows": "Convolution2d/hybrid/float32-qsymm_s8-float32",
    "recurrent_sequence": f"{_LSTM}/basic/float32",
    "reduce": "Reduce/by-hand-mean-of-rows/float32",
    "resize_bilinear": "Resize/by-hand-bilinear/float32",
    "resize_bilinear_i16": "Resize/bilinear-plain-5-to-13/qsymm_s16",
    "roi_align": "RoiAlign/free/float32-signed32",
    "scatter_by_index": "ScatterNd/basic/float16-signed32-float16",
    "softmax": "Softmax/by-hand-equal/float32",
    "softmax_bytes": "Softmax/rows/qasymm_s8",
    "softmax_i16": "Softmax/15-bits/qsymm_s16",
    "svdf": "Svdf/basic/float32",
    "svdf, integers": "Svdf/basic/qasymm_s8-qsymm_s8-qsymm_s16-signed32-qsymm_s16",
    "svdf, bytes": "Svdf/basic/qasymm_s8-qsymm_s8-signed32-qasymm_s8",
    "top_k": "TopkV2/basic/float32",
    "vector_matrix_f32": "FullyConnected/by-hand-basic/float32",
    "vector_matrix_u8": "Convolution2d/by-hand-quantized/qasymm_s8",
    "window_sums": "Normalization/basic/float32",
    "zip_streams": "Transpose/by-hand-basic/float32",
}
"""Cases of the kit, by the kernel and what is special about it."""


def _bytes_by_lines() -> Given:
    """Bytes times a constant for each channel."""
    info = TensorInfo((256, 75), DataType.QASYMM_U8, Quantization.per_tensor(0.0625, 127))
    output = Quantization.per_tensor(0.0304, 120)
    network, random = Network(), np.random.default_rng(3)
    factors = network.constant(
        random.integers(0, 256, 75, np.uint8),
        data_type=DataType.QASYMM_U8,
        quantization=Quantization.per_tensor(0.0084, 40),
    )
    layer = ops.ElementwiseBinary(ops.BinaryOperation.MUL)
    x = network.input("x", info)
    made = network.add(layer, x, factors, output=TensorInfo(None, info.data_type, output))
    network.output("y", made)
    return network, {"x": random.integers(0, 256, (256, 75), np.uint8)}


def _convolution(image: tuple[int, ...], filters: int, kernel: tuple[int, int]) -> Given:
    """A convolution of small integers, which bfloat16 holds and float32 adds up exactly."""
    network, random = Network(), np.random.default_rng(3)
    shape = (filters, *kernel, image[3])
    x = network.input("x", TensorInfo(image, DataType.FLOAT32))
    weights = network.constant(random.integers(-3, 4, shape).astype(np.float32))
    operation = ops.Convolution2d(padding=ops.Padding.SAME)
    network.output("y", network.add(operation, x, weights))
    return network, {"x": random.integers(-3, 4, image).astype(np.float32)}


def _bytes_by_pairs() -> Given:
    """A product of bytes that is worth two rows at a time."""
    info = TensorInfo((1, 8, 8, 32), DataType.QASYMM_U8, Quantization.per_tensor(0.02, 120))
    network, random = Network(), np.random.default_rng(3)
    weights = network.constant(
        random.integers(-127, 128, (32, 1, 1, 32), np.int8),
        data_type=DataType.QSYMM_S8,
        quantization=Quantization.per_tensor(0.01),
    )
    output = TensorInfo(None, info.data_type, Quantization.per_tensor(0.1, 128))
    x = network.input("x", info)
    network.output("y", network.add(ops.Convolution2d(), x, weights, output=output))
    return network, {"x": random.integers(0, 256, info.known_shape, np.uint8)}


def _bytes_of_floats() -> Given:
    """Float32 elements alone: others are converted in the loop that quantises them."""
    net = Network()
    x = net.input("x", TensorInfo((20, 20), DataType.FLOAT32))
    info = TensorInfo(None, DataType.QASYMM_U8, Quantization((0.25,), (128,)))
    net.output("y", net.add_layer(ops.Quantize(), [x], outputs=[info]).outputs[0])
    return net, {"x": np.linspace(-40, 40, 400, dtype=np.float32).reshape(20, 20)}


_NETWORKS: Mapping[str, Callable[[], Given]] = {
    "byte_lines": _bytes_by_lines,
    "convolution_u8, products": _bytes_by_pairs,
    "quantize_u8": _bytes_of_floats,
    "winograd_f32": lambda: _convolution((1, 8, 8, 16), 64, (3, 3)),
}
"""Others, by the same."""

FAMILIES = (*_CASES, *_NETWORKS)

ELSEWHERE: Mapping[str, str] = {
    "convolution_bf16": "test_relaxed.py",
    "convolution_bf16_matrix": "test_matrix_unit.py",
    "convolution_bf16_paired": "test_relaxed.py",
    "convolution_dynamic_matrix": "test_matrix_unit.py",
    "convolution_sums_matrix": "test_matrix_unit.py",
    "convolution_u8_matrix": "test_matrix_unit.py",
    "convolution_u8_paired": "the family 'convolution_u8, products', where there is one",
    "convolution_u8_sorted": "test_sorted_steps.py",
    "executor": "every program",
    "loop": "test_loops.py",
    "machine_trial": "test_tuning.py",
    "products_f32": "extensions/onnx/tests/test_open_sizes.py",
    "put_run": "test_loops.py",
    "python_call": "every program",
    "sample_axis": "extensions/onnx/tests/test_open_sizes.py",
    "winograd_u8": "test_winograd_u8.py",
    "worker": "test_threads.py",
}
"""What runs kernels that have no network here."""


def kernel_names() -> set[str]:
    """Every kernel that there is."""
    return {module.name for module in pkgutil.iter_modules(kernels.__path__)}


def family_network(family: str) -> Given:
    """A family's network, and inputs for it.

    Parameters
    ----------
    family : str
        Of `FAMILIES`.
    """
    if family in _NETWORKS:
        return _NETWORKS[family]()
    case = _cases()[_CASES[family]]
    return case.graph(), case.feeds()


def kernels_of(network: Network | Graph, isa: Isa) -> tuple[Kernel, ...]:
    """What a network is compiled to."""
    return program_of(network, isa).kernels


@cache
def _cases() -> Mapping[str, Case]:
    """The kit's, without what is computed of others."""
    drawn = (case for sketch in all_case_templates() for case in sketch.cases())
    made: Iterator[Case] = itertools.chain(by_hand.cases(), drawn)
    wanted = {*_CASES.values()}
    return {case.id: case for case in made if case.id in wanted}
