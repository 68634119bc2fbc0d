"""PyArmNN's INetwork: a network that programs build layer by layer."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from armpy_compat.pyarmnn.descriptors import layer_descriptors as kinds
from armpy_compat.pyarmnn.descriptors.lstm_params import LstmInputParams, QuantizedLstmInputParams
from armpy_compat.pyarmnn.descriptors.views import ConcatDescriptor, SplitterDescriptor
from armpy_compat.pyarmnn.layers import IConnectableLayer
from armpy_compat.pyarmnn.parsed_model import ParsedModel
from armpy_compat.pyarmnn.swig import SwigObject, wrong_arguments
from armpy_compat.pyarmnn.tensors import ConstTensor

Weights = ConstTensor | str | None
"""Weights, as up to Arm NN 22.x, or the layer's name, as since then."""


class INetwork(SwigObject):
    """A network that is built by adding layers and connecting their slots, or was parsed.

    Layers whose weights are arguments in Arm NN 20.08, and connected Constant layers in 24.02, take
    both. Every method adds a layer and returns it.

    Attributes
    ----------
    parsed : ParsedModel or None
        The model file of a network that a parser made; such a network takes no more layers.
    layers : list of IConnectableLayer
        Layers in the order in which they were added.
    """

    def __init__(self) -> None:
        self.parsed: ParsedModel | None = None
        self.layers: list[IConnectableLayer] = []

    @classmethod
    def of_model(cls, parsed: ParsedModel) -> INetwork:
        """The network of a model file."""
        network = cls()
        network.parsed = parsed
        return network

    def _add(
        self,
        kind: str,
        name: str | None,
        num_inputs: int = 1,
        num_outputs: int = 1,
        descriptor: object = None,
        *,
        descriptor_type: type | None = None,
        tensors: Mapping[str, ConstTensor | None] | None = None,
        binding_id: int = -1,
    ) -> IConnectableLayer:
        """Add a layer; TypeError for a descriptor, name or tensor of another type."""
        present = {} if tensors is None else {n: t for n, t in tensors.items() if t is not None}
        fits = descriptor_type is None or isinstance(descriptor, descriptor_type)
        if not (
            fits
            and isinstance(name, str | None)
            and isinstance(binding_id, int)
            and all(isinstance(tensor, ConstTensor) for tensor in present.values())
        ):
            raise wrong_arguments(f"INetwork_Add{kind}Layer")
        if self.parsed is not None:
            raise RuntimeError(
                "This network was parsed from a model file and takes no more layers. Build it with"
                " armpy.Network, or change the model."
            )
        layer = IConnectableLayer(
            kind,
            name or "",
            num_inputs,
            num_outputs,
            copy.deepcopy(descriptor),
            {n: _owned(tensor) for n, tensor in present.items()},
            binding_id,
        )
        self.layers.append(layer)
        return layer

    def _add_weighted(
        self,
        kind: str,
        descriptor: object,
        descriptor_type: type,
        weights: Weights,
        biases: ConstTensor | None,
        name: str | None,
    ) -> IConnectableLayer:
        """Add a layer whose weights are arguments, or connected to its inputs 1 and 2."""
        if isinstance(weights, str):
            weights, name = None, weights
        num_inputs = 1
        if weights is None and isinstance(descriptor, descriptor_type):
            num_inputs = 3 if getattr(descriptor, "m_BiasEnabled", False) else 2
        tensors = {"weights": weights, "biases": biases}
        return self._add(
            kind, name, num_inputs, 1, descriptor, descriptor_type=descriptor_type, tensors=tensors
        )

    def AddInputLayer(self, id: int, name: str | None = None) -> IConnectableLayer:
        """Add an input of the network, with the id that calls pair its tensor with."""
        return self._add("Input", name, 0, 1, binding_id=id)

    def AddOutputLayer(self, id: int, name: str | None = None) -> IConnectableLayer:
        """Add an output of the network, with the id that calls pair its tensor with."""
        return self._add("Output", name, 1, 0, binding_id=id)

    def AddConstantLayer(self, input: ConstTensor, name: str | None = None) -> IConnectableLayer:
        """Add a constant, whose elements are copied."""
        return self._add("Constant", name, 0, 1, tensors={"input": input})

    def AddConvolution2dLayer(
        self,
        convolution2dDescriptor: kinds.Convolution2dDescriptor,
        weights: Weights = None,
        biases: ConstTensor | None = None,
        name: str | None = None,
    ) -> IConnectableLayer:
        """Add a convolution of images, with weights as arguments or at inputs 1 and 2."""
        kind = kinds.Convolution2dDescriptor
        descriptor = convolution2dDescriptor
        return self._add_weighted("Convolution2d", descriptor, kind, weights, biases, name)

    def AddConvolution3dLayer(
        self,
        convolution3dDescriptor: kinds.Convolution3dDescriptor,
        name: str | None = None,
    ) -> IConnectableLayer:
        """Add a convolution of volumes, with weights at inputs 1 and 2."""
        kind = kinds.Convolution3dDescriptor
        return self._add_weighted("Convolution3d", convolution3dDescriptor, kind, None, None, name)

    def AddDepthwiseConvolution2dLayer(
        self,
        convolution2dDescriptor: kinds.DepthwiseConvolution2dDescriptor,
        weights: Weights = None,
        biases: ConstTensor | None = None,
        name: str | None = None,
    ) -> IConnectableLayer:
        """Add a convolution channel by channel, with weights as arguments or at inputs 1 and 2.

        Weights that are an argument are [M, I, H, W], as in 20.08, if these sizes fit the input;
        others are [1, H, W, I * M].
        """
        kind = kinds.DepthwiseConvolution2dDescriptor
        descriptor = convolution2dDescriptor
        return self._add_weighted("DepthwiseConvolution2d", descriptor, kind, weights, biases, name)

    def AddFullyConnectedLayer(
        self,
        fullyConnectedDescriptor: kinds.FullyConnectedDescriptor,
        weights: Weights = None,
        biases: ConstTensor | None = None,
        name: str | None = None,
    ) -> IConnectableLayer:
        """Add a product with a matrix, which is an argument or at input 1, with biases at 2."""
        kind = kinds.FullyConnectedDescriptor
        descriptor = fullyConnectedDescriptor
        return self._add_weighted("FullyConnected", descriptor, kind, weights, biases, name)

    def AddTransposeConvolution2dLayer(
        self,
        descriptor: kinds.TransposeConvolution2dDescriptor,
        weights: ConstTensor,
        biases: ConstTensor | None = None,
        name: str | None = None,
    ) -> IConnectableLayer:
        """Add a transposed convolution of images."""
        return self._add(
            "TransposeConvolution2d",
            name,
            descriptor=descriptor,
            descriptor_type=kinds.TransposeConvolution2dDescriptor,
            tensors={"weights": weights, "biases": biases},
        )

    def AddBatchNormalizationLayer(
        self,
        desc: kinds.BatchNormalizationDescriptor,
        mean: ConstTensor,
        variance: ConstTensor,
        beta: ConstTensor,
        gamma: ConstTensor,
        name: str | None = None,
    ) -> IConnectableLayer:
        """Add a normalisation by known means and variances of channels."""
        return self._add(
            "BatchNormalization",
            name,
            descriptor=desc,
            descriptor_type=kinds.BatchNormalizationDescriptor,
            tensors={"mean": mean, "variance": variance, "beta": beta, "gamma": gamma},
        )

    def AddDetectionPostProcessLayer(
        self,
        descriptor: kinds.DetectionPostProcessDescriptor,
        anchors: ConstTensor,
        name: str | None = None,
    ) -> IConnectableLayer:
        """Add the choice of the best boxes among those around anchors."""
        return self._add(
            "DetectionPostProcess",
            name,
            2,
            4,
            descriptor,
            descriptor_type=kinds.DetectionPostProcessDescriptor,
            tensors={"anchors": anchors},
        )

    def AddLstmLayer(
        self,
        descriptor: kinds.LstmDescriptor,
        params: LstmInputParams,
        name: str | None = None,
    ) -> IConnectableLayer:
        """Add one step of an LSTM: input and two states in; scratch, two states and output out."""
        if not isinstance(params, LstmInputParams):
            raise wrong_arguments("INetwork_AddLstmLayer")
        kind = kinds.LstmDescriptor
        tensors = vars(params)
        return self._add("Lstm", name, 3, 4, descriptor, descriptor_type=kind, tensors=tensors)

    def AddQuantizedLstmLayer(
        self, params: QuantizedLstmInputParams, name: str | None = None
    ) -> IConnectableLayer:
        """Add one step of an LSTM of 8 and 16 bits: input and two states in, two states out."""
        if not isinstance(params, QuantizedLstmInputParams):
            raise wrong_arguments("INetwork_AddQuantizedLstmLayer")
        return self._add("QuantizedLstm", name, 3, 2, tensors=vars(params))

    def AddConcatLayer(
        self, concatDescriptor: ConcatDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a concatenation of as many tensors as the descriptor has views."""
        kind = ConcatDescriptor
        count = concatDescriptor.GetNumViews() if isinstance(concatDescriptor, kind) else 0
        return self._add("Concat", name, count, 1, concatDescriptor, descriptor_type=kind)

    def AddSplitterLayer(
        self, splitterDescriptor: SplitterDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a split into as many tensors as the descriptor has views."""
        kind = SplitterDescriptor
        count = splitterDescriptor.GetNumViews() if isinstance(splitterDescriptor, kind) else 0
        return self._add("Splitter", name, 1, count, splitterDescriptor, descriptor_type=kind)

    def AddStackLayer(
        self, descriptor: kinds.StackDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a stack of as many tensors as the descriptor says."""
        kind = kinds.StackDescriptor
        count = descriptor.m_NumInputs if isinstance(descriptor, kind) else 0
        return self._add("Stack", name, count, 1, descriptor, descriptor_type=kind)

    def AddStandInLayer(
        self, descriptor: kinds.StandInDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a place for an operation that Arm NN does not have; `Optimize` refuses it."""
        kind = kinds.StandInDescriptor
        num_inputs = num_outputs = 0
        if isinstance(descriptor, kind):
            num_inputs, num_outputs = descriptor.m_NumInputs, descriptor.m_NumOutputs
        return self._add("StandIn", name, num_inputs, num_outputs, descriptor, descriptor_type=kind)

    def AddMergeLayer(self, name: str | None = None) -> IConnectableLayer:
        """Add a merge of two branches; `Optimize` refuses it."""
        return self._add("Merge", name, 2)

    def AddSwitchLayer(self, name: str | None = None) -> IConnectableLayer:
        """Add a switch between two branches; `Optimize` refuses it."""
        return self._add("Switch", name, 2, 2)

    def AddAdditionLayer(self, name: str | None = None) -> IConnectableLayer:
        """Add a sum of two tensors."""
        return self._add("Addition", name, 2)

    def AddCastLayer(self, name: str | None = None) -> IConnectableLayer:
        """Add a conversion to the output's data type."""
        return self._add("Cast", name)

    def AddDequantizeLayer(self, name: str | None = None) -> IConnectableLayer:
        """Add a conversion of quantised numbers to real ones."""
        return self._add("Dequantize", name)

    def AddDivisionLayer(self, name: str | None = None) -> IConnectableLayer:
        """Add a quotient of two tensors."""
        return self._add("Division", name, 2)

    def AddFloorLayer(self, name: str | None = None) -> IConnectableLayer:
        """Add rounding down."""
        return self._add("Floor", name)

    def AddGatherNdLayer(self, name: str | None = None) -> IConnectableLayer:
        """Add a choice of slices by the indices at input 1."""
        return self._add("GatherNd", name, 2)

    def AddMaximumLayer(self, name: str | None = None) -> IConnectableLayer:
        """Add the larger elements of two tensors."""
        return self._add("Maximum", name, 2)

    def AddMinimumLayer(self, name: str | None = None) -> IConnectableLayer:
        """Add the smaller elements of two tensors."""
        return self._add("Minimum", name, 2)

    def AddMultiplicationLayer(self, name: str | None = None) -> IConnectableLayer:
        """Add a product of two tensors."""
        return self._add("Multiplication", name, 2)

    def AddPreluLayer(self, name: str | None = None) -> IConnectableLayer:
        """Add a ReLU whose slope for negative elements is input 1."""
        return self._add("Prelu", name, 2)

    def AddQuantizeLayer(self, name: str | None = None) -> IConnectableLayer:
        """Add a conversion of real numbers to quantised ones."""
        return self._add("Quantize", name)

    def AddRankLayer(self, name: str | None = None) -> IConnectableLayer:
        """Add the number of dimensions."""
        return self._add("Rank", name)

    def AddReverseV2Layer(self, name: str | None = None) -> IConnectableLayer:
        """Add a reversal along the axes at input 1."""
        return self._add("ReverseV2", name, 2)

    def AddShapeLayer(self, name: str | None = None) -> IConnectableLayer:
        """Add the sizes of the dimensions."""
        return self._add("Shape", name)

    def AddSubtractionLayer(self, name: str | None = None) -> IConnectableLayer:
        """Add a difference of two tensors."""
        return self._add("Subtraction", name, 2)

    def AddActivationLayer(
        self, activationDescriptor: kinds.ActivationDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add an activation function."""
        kind = kinds.ActivationDescriptor
        return self._add("Activation", name, 1, 1, activationDescriptor, descriptor_type=kind)

    def AddArgMinMaxLayer(
        self, desc: kinds.ArgMinMaxDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add the places of the smallest or largest elements along an axis."""
        kind = kinds.ArgMinMaxDescriptor
        return self._add("ArgMinMax", name, 1, 1, desc, descriptor_type=kind)

    def AddBatchMatMulLayer(
        self, desc: kinds.BatchMatMulDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add products of matrices."""
        kind = kinds.BatchMatMulDescriptor
        return self._add("BatchMatMul", name, 2, 1, desc, descriptor_type=kind)

    def AddBatchToSpaceNdLayer(
        self, batchToSpaceNdDescriptor: kinds.BatchToSpaceNdDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a move of batches into blocks of images."""
        kind = kinds.BatchToSpaceNdDescriptor
        return self._add(
            "BatchToSpaceNd", name, 1, 1, batchToSpaceNdDescriptor, descriptor_type=kind
        )

    def AddChannelShuffleLayer(
        self, channelShuffleDescriptor: kinds.ChannelShuffleDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a shuffle of groups along an axis."""
        kind = kinds.ChannelShuffleDescriptor
        return self._add(
            "ChannelShuffle", name, 1, 1, channelShuffleDescriptor, descriptor_type=kind
        )

    def AddComparisonLayer(
        self, comparisonDescriptor: kinds.ComparisonDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a comparison of two tensors."""
        kind = kinds.ComparisonDescriptor
        return self._add("Comparison", name, 2, 1, comparisonDescriptor, descriptor_type=kind)

    def AddDepthToSpaceLayer(
        self, depthToSpaceDescriptor: kinds.DepthToSpaceDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a move of channels into blocks of images."""
        kind = kinds.DepthToSpaceDescriptor
        return self._add("DepthToSpace", name, 1, 1, depthToSpaceDescriptor, descriptor_type=kind)

    def AddElementwiseBinaryLayer(
        self,
        elementwiseBinaryDescriptor: kinds.ElementwiseBinaryDescriptor,
        name: str | None = None,
    ) -> IConnectableLayer:
        """Add an operation on two tensors, element by element."""
        kind = kinds.ElementwiseBinaryDescriptor
        return self._add(
            "ElementwiseBinary", name, 2, 1, elementwiseBinaryDescriptor, descriptor_type=kind
        )

    def AddElementwiseUnaryLayer(
        self, elementwiseUnaryDescriptor: kinds.ElementwiseUnaryDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add an operation on each element."""
        kind = kinds.ElementwiseUnaryDescriptor
        return self._add(
            "ElementwiseUnary", name, 1, 1, elementwiseUnaryDescriptor, descriptor_type=kind
        )

    def AddFillLayer(
        self, fillDescriptor: kinds.FillDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a tensor of one value, with the shape at input 0."""
        kind = kinds.FillDescriptor
        return self._add("Fill", name, 1, 1, fillDescriptor, descriptor_type=kind)

    def AddGatherLayer(
        self, descriptor: kinds.GatherDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a choice of slices along an axis, by the indices at input 1."""
        kind = kinds.GatherDescriptor
        return self._add("Gather", name, 2, 1, descriptor, descriptor_type=kind)

    def AddInstanceNormalizationLayer(
        self, desc: kinds.InstanceNormalizationDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a normalisation of each channel of each image."""
        kind = kinds.InstanceNormalizationDescriptor
        return self._add("InstanceNormalization", name, 1, 1, desc, descriptor_type=kind)

    def AddL2NormalizationLayer(
        self, desc: kinds.L2NormalizationDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a division by the length along the channels."""
        kind = kinds.L2NormalizationDescriptor
        return self._add("L2Normalization", name, 1, 1, desc, descriptor_type=kind)

    def AddLogicalBinaryLayer(
        self, logicalBinaryDescriptor: kinds.LogicalBinaryDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a logical operation on two tensors."""
        kind = kinds.LogicalBinaryDescriptor
        return self._add("LogicalBinary", name, 2, 1, logicalBinaryDescriptor, descriptor_type=kind)

    def AddLogSoftmaxLayer(
        self, logSoftmaxDescriptor: kinds.SoftmaxDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add the logarithm of a softmax."""
        kind = kinds.SoftmaxDescriptor
        return self._add("LogSoftmax", name, 1, 1, logSoftmaxDescriptor, descriptor_type=kind)

    def AddMeanLayer(
        self, meanDescriptor: kinds.MeanDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a mean along axes."""
        kind = kinds.MeanDescriptor
        return self._add("Mean", name, 1, 1, meanDescriptor, descriptor_type=kind)

    def AddNormalizationLayer(
        self, normalizationDescriptor: kinds.NormalizationDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a normalisation by neighbours."""
        kind = kinds.NormalizationDescriptor
        return self._add("Normalization", name, 1, 1, normalizationDescriptor, descriptor_type=kind)

    def AddPadLayer(
        self, padDescriptor: kinds.PadDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add elements around a tensor."""
        kind = kinds.PadDescriptor
        return self._add("Pad", name, 1, 1, padDescriptor, descriptor_type=kind)

    def AddPermuteLayer(
        self, permuteDescriptor: kinds.PermuteDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a permutation: where each dimension goes."""
        kind = kinds.PermuteDescriptor
        return self._add("Permute", name, 1, 1, permuteDescriptor, descriptor_type=kind)

    def AddPooling2dLayer(
        self, pooling2dDescriptor: kinds.Pooling2dDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add pooling of images."""
        kind = kinds.Pooling2dDescriptor
        return self._add("Pooling2d", name, 1, 1, pooling2dDescriptor, descriptor_type=kind)

    def AddPooling3dLayer(
        self, pooling3dDescriptor: kinds.Pooling3dDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add pooling of volumes."""
        kind = kinds.Pooling3dDescriptor
        return self._add("Pooling3d", name, 1, 1, pooling3dDescriptor, descriptor_type=kind)

    def AddReduceLayer(
        self, reduceDescriptor: kinds.ReduceDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a reduction along axes."""
        kind = kinds.ReduceDescriptor
        return self._add("Reduce", name, 1, 1, reduceDescriptor, descriptor_type=kind)

    def AddReshapeLayer(
        self, reshapeDescriptor: kinds.ReshapeDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a change of shape."""
        kind = kinds.ReshapeDescriptor
        return self._add("Reshape", name, 1, 1, reshapeDescriptor, descriptor_type=kind)

    def AddResizeLayer(
        self, resizeDescriptor: kinds.ResizeDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a change of size of images."""
        kind = kinds.ResizeDescriptor
        return self._add("Resize", name, 1, 1, resizeDescriptor, descriptor_type=kind)

    def AddSliceLayer(
        self, sliceDescriptor: kinds.SliceDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a part of a tensor."""
        kind = kinds.SliceDescriptor
        return self._add("Slice", name, 1, 1, sliceDescriptor, descriptor_type=kind)

    def AddSoftmaxLayer(
        self, softmaxDescriptor: kinds.SoftmaxDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a softmax along an axis."""
        kind = kinds.SoftmaxDescriptor
        return self._add("Softmax", name, 1, 1, softmaxDescriptor, descriptor_type=kind)

    def AddSpaceToBatchNdLayer(
        self, spaceToBatchNdDescriptor: kinds.SpaceToBatchNdDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a move of blocks of images into batches."""
        kind = kinds.SpaceToBatchNdDescriptor
        return self._add(
            "SpaceToBatchNd", name, 1, 1, spaceToBatchNdDescriptor, descriptor_type=kind
        )

    def AddSpaceToDepthLayer(
        self, spaceToDepthDescriptor: kinds.SpaceToDepthDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a move of blocks of images into channels."""
        kind = kinds.SpaceToDepthDescriptor
        return self._add("SpaceToDepth", name, 1, 1, spaceToDepthDescriptor, descriptor_type=kind)

    def AddStridedSliceLayer(
        self, stridedSliceDescriptor: kinds.StridedSliceDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a part of a tensor, in steps."""
        kind = kinds.StridedSliceDescriptor
        return self._add("StridedSlice", name, 1, 1, stridedSliceDescriptor, descriptor_type=kind)

    def AddTileLayer(
        self, tileDescriptor: kinds.TileDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add repetitions of a tensor."""
        kind = kinds.TileDescriptor
        return self._add("Tile", name, 1, 1, tileDescriptor, descriptor_type=kind)

    def AddTransposeLayer(
        self, transposeDescriptor: kinds.TransposeDescriptor, name: str | None = None
    ) -> IConnectableLayer:
        """Add a permutation: where each dimension comes from."""
        kind = kinds.TransposeDescriptor
        return self._add("Transpose", name, 1, 1, transposeDescriptor, descriptor_type=kind)


def _owned(tensor: ConstTensor) -> ConstTensor:
    """A constant whose elements the caller cannot change."""
    return ConstTensor(tensor.GetInfo(), tensor.get_memory_area().copy())
