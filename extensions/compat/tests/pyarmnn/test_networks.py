"""Networks that are built layer by layer; expected values are NumPy's or worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import armpy_compat.pyarmnn as ann
from armpy_compat.pyarmnn.layers import IConnectableLayer
from armpy_compat.pyarmnn.lowering.network_graph import LOWERINGS

Array = npt.NDArray[Any]  # Any: several types

_TYPES = {
    "float32": ann.DataType_Float32,
    "float16": ann.DataType_Float16,
    "int32": ann.DataType_Signed32,
    "bool": ann.DataType_Boolean,
    "uint8": ann.DataType_QAsymmU8,
    "int16": ann.DataType_QSymmS16,
}


def _float(values: object) -> Array:
    return np.array(values, np.float32)


def _int(values: object) -> Array:
    return np.array(values, np.int32)


def _byte(values: object) -> Array:
    return np.array(values, np.uint8)


def _info(array: Array, scale: float = 1.0, offset: int = 0) -> ann.TensorInfo:
    shape = ann.TensorShape(array.shape or (1,))
    return ann.TensorInfo(shape, _TYPES[array.dtype.name], scale, offset, True)


def _constant(array: Array, scale: float = 1.0, offset: int = 0) -> ann.ConstTensor:
    return ann.ConstTensor(_info(array, scale, offset), array)


def _run(
    add: Callable[[ann.INetwork], IConnectableLayer],
    inputs: Sequence[Array],
    outputs: Sequence[ann.TensorInfo],
    infos: Sequence[ann.TensorInfo] = (),
) -> list[Array]:
    """Results of a network of one layer; `infos` describe inputs that are quantised."""
    network = ann.INetwork()
    layer = add(network)
    described = list(infos) or [_info(array) for array in inputs]
    for index, info in enumerate(described):
        slot = network.AddInputLayer(index).GetOutputSlot(0)
        slot.SetTensorInfo(info)
        slot.Connect(layer.GetInputSlot(index))
    for index, info in enumerate(outputs):
        slot = layer.GetOutputSlot(index)
        slot.SetTensorInfo(info)
        slot.Connect(network.AddOutputLayer(index).GetInputSlot(0))
    return _enqueue(network, described, inputs, outputs)


def _enqueue(
    network: ann.INetwork,
    infos: Sequence[ann.TensorInfo],
    inputs: Sequence[Array],
    outputs: Sequence[ann.TensorInfo],
) -> list[Array]:
    runtime = ann.IRuntime(ann.CreationOptions())
    backends = [ann.BackendId("CpuRef")]
    optimized, messages = ann.Optimize(network, backends, runtime.GetDeviceSpec())
    assert messages == ()
    network_id, _ = runtime.LoadNetwork(optimized)
    sources = ann.make_input_tensors(list(enumerate(infos)), list(inputs))
    targets = ann.make_output_tensors(list(enumerate(outputs)))
    runtime.EnqueueWorkload(network_id, sources, targets)
    return ann.workload_tensors_to_ndarray(targets)


def _floats(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


_A = _floats(2, 3)
_B = _float([[1, -2, 3], [2, 2, -1]])
_BOOL = np.array([[True, False], [True, True]])


def _reduce(axes: list[int], operation: int) -> ann.ReduceDescriptor:
    descriptor = ann.ReduceDescriptor()
    descriptor.m_vAxis, descriptor.m_ReduceOperation = axes, operation
    return descriptor


_CASES: dict[str, tuple[Callable[[ann.INetwork], IConnectableLayer], list[Array], Array]] = {
    "BatchMatMul": (
        lambda n: n.AddBatchMatMulLayer(ann.BatchMatMulDescriptor(False, True)),
        [_A, _B],
        _A @ _B.T,
    ),
    "Cast": (lambda n: n.AddCastLayer(), [_float([[1.7, -2.2]])], _int([[1, -2]])),
    "ChannelShuffle": (
        lambda n: n.AddChannelShuffleLayer(ann.ChannelShuffleDescriptor(2, 1)),
        [_float([[1, 2, 3, 4]])],
        _float([[1, 3, 2, 4]]),
    ),
    "Comparison": (
        lambda n: n.AddComparisonLayer(
            ann.ComparisonDescriptor(ann.ComparisonOperation_GreaterOrEqual)
        ),
        [_A, _B],
        _A >= _B,
    ),
    "ElementwiseBinary": (
        lambda n: n.AddElementwiseBinaryLayer(
            ann.ElementwiseBinaryDescriptor(ann.BinaryOperation_SqDiff)
        ),
        [_A, _B],
        (_A - _B) ** 2,
    ),
    "Fill": (
        lambda n: n.AddFillLayer(ann.FillDescriptor(2.5)),
        [_int([2, 3])],
        np.full((2, 3), 2.5, np.float32),
    ),
    "GatherNd": (
        lambda n: n.AddGatherNdLayer(),
        [_A, _int([[1, 2], [0, 1]])],
        np.array([_A[1, 2], _A[0, 1]]),
    ),
    "LogicalBinary": (
        lambda n: n.AddLogicalBinaryLayer(
            ann.LogicalBinaryDescriptor(ann.LogicalBinaryOperation_LogicalAnd)
        ),
        [_BOOL, ~_BOOL[::-1]],
        _BOOL & ~_BOOL[::-1],
    ),
    "Rank": (lambda n: n.AddRankLayer(), [_A], _int([2])),
    "Reduce": (
        lambda n: n.AddReduceLayer(_reduce([1], ann.ReduceOperation_Prod)),
        [_B],
        np.prod(_B, axis=1),
    ),
    "Reduce of all": (
        lambda n: n.AddReduceLayer(_reduce([], ann.ReduceOperation_Max)),
        [_B],
        _float([3]),
    ),
    "ReverseV2": (lambda n: n.AddReverseV2Layer(), [_B, _int([1])], _B[:, ::-1]),
    "Shape": (lambda n: n.AddShapeLayer(), [_A], _int([2, 3])),
    "Tile": (lambda n: n.AddTileLayer(ann.TileDescriptor([2, 1])), [_A], np.tile(_A, (2, 1))),
    "Transpose": (
        lambda n: n.AddTransposeLayer(ann.TransposeDescriptor(ann.PermutationVector((2, 0, 1)))),
        [_floats(2, 3, 4)],
        _floats(2, 3, 4).transpose(2, 0, 1),
    ),
    "Permute": (
        lambda n: n.AddPermuteLayer(ann.PermuteDescriptor(ann.PermutationVector((2, 0, 1)))),
        [_floats(2, 3, 4)],
        _floats(2, 3, 4).transpose(1, 2, 0),
    ),
}


@pytest.mark.parametrize("name", _CASES)
def test_a_layer_computes_what_numpy_does(name: str) -> None:
    add, inputs, expected = _CASES[name]
    (result,) = _run(add, inputs, [_info(expected)])
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_every_kind_of_layer_has_a_lowering_or_a_reason() -> None:
    kinds = {
        name.removeprefix("Add").removesuffix("Layer")
        for name in dir(ann.INetwork)
        if name.startswith("Add")
    }
    assert len(kinds) == 64
    assert kinds - {*LOWERINGS} == {"Constant", "Input", "Merge", "Output", "StandIn", "Switch"}


def test_numbers_of_two_scales_are_compared_as_real_numbers() -> None:
    numbers = np.array([[10, 20]], np.uint8)
    infos = [_info(numbers, 1.0), _info(numbers, 0.5)]
    descriptor = ann.ComparisonDescriptor(ann.ComparisonOperation_Greater)
    expected = np.array([[True, True]])
    (result,) = _run(
        lambda n: n.AddComparisonLayer(descriptor), [numbers, numbers], [_info(expected)], infos
    )
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("layout", [ann.DataLayout_NHWC, ann.DataLayout_NCHW])
def test_weights_of_a_convolution_are_arguments_or_connected(layout: int) -> None:
    last = layout == ann.DataLayout_NHWC
    image = _floats(1, 4, 5, 2) if last else _floats(1, 2, 4, 5)
    weights = _floats(3, 2, 2, 2)
    bias = _float([1, 2, 3])
    descriptor = ann.Convolution2dDescriptor()
    descriptor.m_DataLayout, descriptor.m_BiasEnabled = layout, True
    output = _info(np.zeros((1, 3, 4, 3) if last else (1, 3, 3, 4), np.float32))

    def with_arguments(network: ann.INetwork) -> IConnectableLayer:
        return network.AddConvolution2dLayer(descriptor, _constant(weights), _constant(bias), "a")

    def with_constants(network: ann.INetwork) -> IConnectableLayer:
        layer = network.AddConvolution2dLayer(descriptor, "b")
        for index, array in enumerate((weights, bias), 1):
            constant = network.AddConstantLayer(_constant(array))
            constant.GetOutputSlot(0).SetTensorInfo(_info(array))
            constant.GetOutputSlot(0).Connect(layer.GetInputSlot(index))
        return layer

    (first,) = _run(with_arguments, [image], [output])
    (second,) = _run(with_constants, [image], [output])
    np.testing.assert_array_equal(first, second)
    window = image[0, :2, :2] if last else image[0, :, :2, :2]
    place = first[0, 0, 0, 1] if last else first[0, 1, 0, 0]
    np.testing.assert_allclose(place, np.sum(window * weights[1]) + 2, rtol=1e-5)


def test_depthwise_weights_have_the_shape_of_20_08_as_arguments_and_of_24_02_as_constants() -> None:
    image = _floats(1, 3, 3, 2)
    weights = _floats(2, 2, 3, 3)  # multiplier, channels, height, width
    descriptor = ann.DepthwiseConvolution2dDescriptor()
    descriptor.m_DataLayout = ann.DataLayout_NHWC
    output = _info(np.zeros((1, 1, 1, 4), np.float32))
    later = np.ascontiguousarray(weights.transpose(2, 3, 1, 0)).reshape(1, 3, 3, 4)

    def with_constant(network: ann.INetwork) -> IConnectableLayer:
        layer = network.AddDepthwiseConvolution2dLayer(descriptor)
        slot = network.AddConstantLayer(_constant(later)).GetOutputSlot(0)
        slot.SetTensorInfo(_info(later))
        slot.Connect(layer.GetInputSlot(1))
        return layer

    (old,) = _run(
        lambda n: n.AddDepthwiseConvolution2dLayer(descriptor, _constant(weights)),
        [image],
        [output],
    )
    (new,) = _run(with_constant, [image], [output])
    expected = [np.sum(image[0, :, :, c] * weights[m, c]) for c in range(2) for m in range(2)]
    np.testing.assert_allclose(old.ravel(), expected, rtol=1e-5)
    np.testing.assert_array_equal(old, new)


def test_a_volume_is_convolved_and_pooled() -> None:
    volume = _floats(1, 2, 2, 2, 1)
    weights = _floats(2, 2, 2, 1, 3)
    convolution = ann.Convolution3dDescriptor()

    def convolve(network: ann.INetwork) -> IConnectableLayer:
        layer = network.AddConvolution3dLayer(convolution)
        slot = network.AddConstantLayer(_constant(weights)).GetOutputSlot(0)
        slot.SetTensorInfo(_info(weights))
        slot.Connect(layer.GetInputSlot(1))
        return layer

    expected = np.einsum("dhwi,dhwio->o", volume[0], weights).reshape(1, 1, 1, 1, 3)
    (result,) = _run(convolve, [volume], [_info(expected)])
    np.testing.assert_allclose(result, expected, rtol=1e-5)

    pooling = ann.Pooling3dDescriptor()
    pooling.m_DataLayout = ann.DataLayout_NDHWC
    pooling.m_PoolType = ann.PoolingAlgorithm_Average
    pooling.m_PoolDepth = pooling.m_PoolHeight = pooling.m_PoolWidth = 2
    pooling.m_StrideX = pooling.m_StrideY = pooling.m_StrideZ = 1
    mean = volume.mean().reshape(1, 1, 1, 1, 1)
    (result,) = _run(lambda n: n.AddPooling3dLayer(pooling), [volume], [_info(mean)])
    np.testing.assert_allclose(result, mean, rtol=1e-5)


def test_padding_of_8_bits_is_the_stored_integer() -> None:
    data = _byte([[7, 9]])
    info = _info(data, 0.5, 3)
    padded = ann.TensorInfo(ann.TensorShape((1, 4)), ann.DataType_QAsymmU8, 0.5, 3)
    descriptor = ann.PadDescriptor([(0, 0), (1, 1)], 200.0)
    (result,) = _run(lambda n: n.AddPadLayer(descriptor), [data], [padded], [info])
    assert result.tolist() == [[200, 7, 9, 200]]


def test_one_step_of_an_lstm() -> None:
    params = ann.LstmInputParams()
    weights = {
        member: _floats(4, 3) if "InputTo" in member else _floats(4, 4)
        for member in dir(params)
        if member.endswith("Weights") and ("InputTo" in member or "RecurrentTo" in member)
    }
    for member, array in weights.items():
        setattr(params, member, _constant(array))
    for bias in ("InputGate", "ForgetGate", "Cell", "OutputGate"):
        setattr(params, f"m_{bias}Bias", _constant(np.zeros(4, np.float32)))
    descriptor = ann.LstmDescriptor()
    descriptor.m_CifgEnabled, descriptor.m_ActivationFunc = False, 4
    x, h, c = _floats(2, 3), _floats(2, 4), _floats(2, 4) * 0.5
    shapes = ((2, 16), (2, 4), (2, 4), (2, 4))
    outputs = [_info(np.zeros(shape, np.float32)) for shape in shapes]
    results = _run(lambda n: n.AddLstmLayer(descriptor, params), [x, h, c], outputs)

    def gate(name: str) -> Array:
        total = x @ weights[f"m_InputTo{name}Weights"].T
        return np.asarray(total + h @ weights[f"m_RecurrentTo{name}Weights"].T)

    def sigmoid(values: Array) -> Array:
        return np.asarray(1 / (1 + np.exp(-values)))

    cell = sigmoid(gate("Forget")) * c + sigmoid(gate("Input")) * np.tanh(gate("Cell"))
    hidden = sigmoid(gate("Output")) * np.tanh(cell)
    np.testing.assert_allclose(results[1], hidden, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(results[2], cell, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(results[3], results[1])


def test_layers_may_be_added_in_any_order_and_shapes_left_out() -> None:
    network = ann.INetwork()
    output = network.AddOutputLayer(5, "y")
    total = network.AddAdditionLayer("sum")
    floor = network.AddFloorLayer("floor")
    source = network.AddInputLayer(9, "x").GetOutputSlot(0)
    source.SetTensorInfo(_info(np.zeros((2,), np.float32)))
    floor.GetOutputSlot(0).Connect(output.GetInputSlot(0))
    total.GetOutputSlot(0).Connect(floor.GetInputSlot(0))
    source.Connect(total.GetInputSlot(0))
    source.Connect(total.GetInputSlot(1))
    runtime = ann.IRuntime(ann.CreationOptions())
    optimized, _ = ann.Optimize(network, [ann.BackendId("CpuRef")], runtime.GetDeviceSpec())
    network_id, _ = runtime.LoadNetwork(optimized)
    result = ann.Tensor(_info(np.zeros((2,), np.float32)))
    inputs = [(9, _constant(_float([0.6, -0.6])))]
    runtime.EnqueueWorkload(network_id, inputs, [(5, result)])
    assert result.get_memory_area().tolist() == [1.0, -2.0]


def test_missing_connections_and_descriptions_are_refused() -> None:
    runtime = ann.IRuntime(ann.CreationOptions())
    spec, backends = runtime.GetDeviceSpec(), [ann.BackendId("CpuRef")]
    network = ann.INetwork()
    floor = network.AddFloorLayer("floor")
    with pytest.raises(RuntimeError, match="Input connection #0 must be connected for Floor"):
        ann.Optimize(network, backends, spec)
    slot = network.AddInputLayer(0, "x").GetOutputSlot(0)
    slot.Connect(floor.GetInputSlot(0))
    with pytest.raises(RuntimeError, match="TensorInfo not set on Input layer 'x'"):
        ann.Optimize(network, backends, spec)
    with pytest.raises(RuntimeError, match="already has a connection"):
        slot.Connect(floor.GetInputSlot(0))


def test_constants_are_copied_when_they_are_added() -> None:
    bias = _float([1, 2, 3])
    network = ann.INetwork()
    total = network.AddAdditionLayer()
    constant = network.AddConstantLayer(_constant(bias)).GetOutputSlot(0)
    bias.flags.writeable = True
    bias[:] = 0
    constant.Connect(total.GetInputSlot(1))
    source = network.AddInputLayer(0).GetOutputSlot(0)
    source.SetTensorInfo(_info(_A))
    source.Connect(total.GetInputSlot(0))
    total.GetOutputSlot(0).Connect(network.AddOutputLayer(0).GetInputSlot(0))
    (result,) = _enqueue(network, [_info(_A)], [_A], [_info(_A)])
    np.testing.assert_array_equal(result, _A + _float([1, 2, 3]))
