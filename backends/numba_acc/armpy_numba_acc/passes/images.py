"""Takes a batch apart: the first layers of a region image by image, where that is faster.

Notes
-----
Early layers have few weights and large images: those of a whole batch are written to memory and
read from there again, while those of one image stay in the cache. Late layers have many weights,
which are read once for a whole batch. Where one turns into the other the model of the machine says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from armpy.core.dataclass import dataclass
from armpy.core.symbolic import is_traced
from armpy.errors import ArmpyError
from armpy.graph import Layer, SubgraphView, Value
from armpy.ops.activation_layers import Activation, Softmax
from armpy.ops.convolution import Convolution2d, Convolution3d, DepthwiseConvolution2d
from armpy.ops.dense import FullyConnected
from armpy.ops.elementwise import ElementwiseBinary, ElementwiseUnary, Prelu
from armpy.ops.joining import Concat
from armpy.ops.movement import Pad
from armpy.ops.operation import Operation
from armpy.ops.pooling import Pooling2d
from armpy.ops.quantizing import Dequantize, Quantize
from armpy.ops.reduction import Reduce
from armpy.ops.reshaping import Reshape
from armpy.ops.resizing import Resize
from armpy.ops.transpose_convolution import TransposeConvolution2d, TransposeConvolution3d
from armpy_numba_acc.machine.cost_model.model import MachineModel

_WITH_WEIGHTS = (
    Convolution2d,
    Convolution3d,
    DepthwiseConvolution2d,
    FullyConnected,
    TransposeConvolution2d,
    TransposeConvolution3d,
)
_OF_VOLUMES = (Convolution3d, TransposeConvolution3d)
_WITHOUT_WEIGHTS = (
    Activation,
    Concat,
    Dequantize,
    ElementwiseBinary,
    ElementwiseUnary,
    Pad,
    Pooling2d,
    Prelu,
    Quantize,
    Reduce,
    Reshape,
    Resize,
    Softmax,
)
_BEGIN_ANEW = (*_WITH_WEIGHTS, Pooling2d, Reduce, Reshape)
"""Layers that are not computed together with those in front of them: here the rest may begin."""

_COMMAND_NS = 500.0
"""Cost of one more command, including its publication to the threads."""

_MOST_COMMANDS = 10_000


@dataclass(frozen=True, slots=True)
class Images:
    """The first layers of a region for one image, and the others for the whole batch."""

    count: int  # images of the batch
    one: SubgraphView
    inputs: Mapping[Value, Value]  # the batch's tensors that those of the one image are a part of
    outputs: Mapping[Value, Value]
    rest: SubgraphView  # with the inputs and outputs of the region


def images_of(view: SubgraphView, model: MachineModel) -> Images | None:
    """Return how a region takes its batch apart; None if it does not.

    Parameters
    ----------
    view
        As `armpy_numba_acc.passes.region.prepared` gives it.
    """
    sizes = [(value.info.known_shape or (0,))[0] for value in view.inputs]
    # For traced sizes, there would be more or fewer commands.
    if not sizes or is_traced(*sizes) or len({*sizes}) > 1 or (count := sizes[0]) < 2:
        return None
    inputs_of_one = {value: _of_one(value) for value in view.inputs}
    ones = dict(inputs_of_one)
    layers: list[Layer] = []
    for layer in view.layers:
        layer_of_one = _layer_of_one(layer, count, ones)
        if layer_of_one is None:
            break
        layers.append(layer_of_one)
        ones.update(zip(layer.outputs, layer_of_one.outputs, strict=True))
    num_layers = _best_number(view, len(layers), count, model)
    if num_layers == 0:
        return None
    outputs_given = {value for layer in view.layers[:num_layers] for value in layer.outputs}
    rest = view.layers[num_layers:]
    wanted = {*view.outputs, *(value for layer in rest for value in layer.inputs)}
    outputs = {ones[value]: value for value in outputs_given if value in wanted}
    read = {value for layer in layers[:num_layers] for value in layer.inputs}
    inputs = {
        value_of_one: value for value, value_of_one in inputs_of_one.items() if value_of_one in read
    }
    one_view = SubgraphView(tuple(layers[:num_layers]), tuple(inputs), tuple(outputs))
    return Images(count, one_view, inputs, outputs, replace(view, layers=rest))


def volumes_of(layers: Sequence[Layer]) -> Images | None:
    """Return how layers take a batch of volumes apart; None if the first one's input is none.

    Kernels walk over slices, rows and pixels: of one volume, or of images that are a batch's.

    Parameters
    ----------
    layers
        A convolution and the layers computed together with it.
    """
    first, last = layers[0], layers[-1].output
    count = first["input"].info.known_shape[0] if isinstance(first.operation, _OF_VOLUMES) else 1
    if count < 2:
        return None
    ones: dict[Value | None, Value] = {}
    inputs: dict[Value, Value] = {}
    for layer in layers:
        for number, value in enumerate(layer.inputs):
            if value is None or value.data is not None or value in ones:
                continue
            is_whole = layer is first and number > 0  # weights that are computed
            ones[value] = value if is_whole else _of_one(value)
            inputs[ones[value]] = value
        ones.update((value, _of_one(value)) for value in layer.outputs)
    one_layers = tuple(
        replace(
            layer,
            inputs=tuple(ones.get(value, value) for value in layer.inputs),
            outputs=tuple(ones[value] for value in layer.outputs),
        )
        for layer in layers
    )
    view_of_one = SubgraphView(one_layers, tuple(inputs), (ones[last],))
    return Images(count, view_of_one, inputs, {ones[last]: last}, replace(view_of_one, layers=()))


def _of_one(value: Value) -> Value:
    """A tensor of one image."""
    return replace(value, info=replace(value.info, shape=(1, *value.info.known_shape[1:])))


def _layer_of_one(layer: Layer, count: int, ones: Mapping[Value, Value]) -> Layer | None:
    """A layer of one image; None if it does not compute each image by itself."""
    operation = layer.operation
    is_known = isinstance(operation, _WITH_WEIGHTS) or _is_image_by_image(layer)
    infos = [value.info for value in layer.inputs if value is not None and value in ones]
    if not (is_known and infos):
        return None
    if any((info.known_shape or (0,))[0] != count for info in (*infos, *layer.output_infos)):
        return None
    if any(
        value is not None and value.data is None and value not in ones for value in layer.inputs
    ):
        return None
    inputs = tuple(None if value is None else ones.get(value, value) for value in layer.inputs)
    if isinstance(operation, Reshape):
        shape = (1, *layer.outputs[0].info.known_shape[1:])
        operation, inputs = Reshape(target_shape=shape), inputs[:1]
    outputs = tuple(_of_one(value) for value in layer.outputs)
    if not _gives(operation, inputs, outputs):
        return None
    return replace(layer, operation=operation, inputs=inputs, outputs=outputs)


def _is_image_by_image(layer: Layer) -> bool:
    """Return whether a layer without weights may be one that looks at one image at a time."""
    if not isinstance(layer.operation, _WITHOUT_WEIGHTS):
        return False
    rank = len(layer.outputs[0].info.known_shape)
    if isinstance(layer.operation, Softmax):
        return rank > 0 and layer.operation.axis % rank != 0
    constants = [
        value.info.known_shape for value in layer.inputs if value and value.data is not None
    ]
    if isinstance(layer.operation, (ElementwiseBinary, Prelu)):
        return all(len(shape) < rank or shape[0] == 1 for shape in constants)
    return True


def _gives(operation: Operation, inputs: Sequence[Value | None], outputs: Sequence[Value]) -> bool:
    """Return whether an operation gives tensors of these shapes: not if it moves images about."""
    infos = [None if value is None else value.info for value in inputs]
    try:
        inferred = operation.infer(infos)
    except ArmpyError:  # it needs more than these infos, or has no result for one image
        return False
    return [info.shape for info in inferred] == [value.info.shape for value in outputs]


def _best_number(view: SubgraphView, most: int, count: int, model: MachineModel) -> int:
    """Return how many of the first layers are run image by image."""
    best, best_ns, saved_ns = 0, 0.0, 0.0
    all_weights = sum(map(_weight_bytes, view.layers))
    for number, layer in enumerate(view.layers[:most]):
        image, weights = _image_bytes(layer) // count, _weight_bytes(layer)
        whole_ns = model.read_ns(count * image, count * image) + model.read_ns(weights, weights)
        apart_ns = model.read_ns(image, image) + model.read_ns(weights, all_weights) + _COMMAND_NS
        saved_ns += whole_ns - count * apart_ns
        follower = view.layers[number + 1] if number + 1 < len(view.layers) else None
        is_end = follower is None or isinstance(follower.operation, _BEGIN_ANEW)
        if is_end and saved_ns > best_ns and (number + 1) * count <= _MOST_COMMANDS:
            best, best_ns = number + 1, saved_ns
    return best


def _image_bytes(layer: Layer) -> int:
    """Return the bytes that a layer reads and writes of a batch's images."""
    read = [value.info for value in layer.inputs if value is not None and value.data is None]
    return sum(info.size_bytes for info in (*read, *layer.output_infos))


def _weight_bytes(layer: Layer) -> int:
    """Return the bytes of constants that a layer reads."""
    values = [value for value in layer.inputs if value is not None and value.data is not None]
    return sum(value.info.size_bytes for value in values)
