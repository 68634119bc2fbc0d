"""Operators that ONNX Runtime takes in ONNX's own domain although no operator set has them.

Notes
-----
Most are of ONNX's first years, and the standard dropped them before they left their trial; see
`armpy_onnx.messages.checking.WITHOUT_SCHEMA` for those that stand with their families.

References
----------
ONNX Runtime, contrib_ops (schemas of the domain ``""``).
"""

from __future__ import annotations

from armpy.graph import Value
from armpy.ops.elementwise import BinaryOperation
from armpy_onnx.blocks import binary, reshaped, scaled, taken
from armpy_onnx.node import Node, Operator, OperatorTable
from armpy_onnx.operators.slicing import sliced


def _scale(node: Node) -> Value:
    return scaled(node, node.value(0), node.real("scale", 1.0))


def _image_scaler(node: Node) -> Value:
    """Every channel of an image times one factor, plus an addend of its own."""
    channels = _image_shape(node)[1]
    bias = [float(number) for number in node.attribute("bias", ())]
    if len(bias) != channels:
        raise node.error(
            "the attribute 'bias' does not have one number per channel",
            expected=str(channels),
            actual=len(bias),
        )
    image = node.value(0)
    column = reshaped(node, node.like(image, bias), (1, channels, 1, 1))
    return binary(node, BinaryOperation.ADD, _scale(node), column)


def _crop(node: Node) -> Value:
    """An image without its borders, or a part of given size after the first two."""
    _, _, height, width = _image_shape(node)
    border, size = node.integers("border"), node.integers("scale", ())
    if len(border) != 4 or len(size) not in (0, 2):
        raise node.error(
            "border or scale has the wrong length",
            expected="4, and 2 or none",
            actual=f"{len(border)} and {len(size)}",
        )
    left, top, right, bottom = border
    end = (top + size[0], left + size[1]) if size else (height - bottom, width - right)
    if not (0 <= top < end[0] <= height and 0 <= left < end[1] <= width):
        raise node.error("nothing is left of the image", actual=f"{border} of {height} x {width}")
    rows = taken(node, node.value(0), 2, top, end[0])
    return taken(node, rows, 3, left, end[1])


def _image_shape(node: Node) -> tuple[int, ...]:
    """Shape of an image with its channels first."""
    shape = node.shape(0)
    if len(shape) != 4:
        raise node.error("the input has the wrong rank", expected="4", actual=shape)
    return shape


def _dynamic_slice(node: Node) -> Value:
    starts = node.ints(1)
    return sliced(node, starts, node.ints(2), node.axes(node.rank(0), index=3), (1,) * len(starts))


OPERATORS: OperatorTable = {
    "Crop": Operator(_crop),
    "DynamicSlice": Operator(_dynamic_slice, decides=(1, 2, 3)),
    "ImageScaler": Operator(_image_scaler, rounds_once=True),
    "Scale": Operator(_scale, rounds_once=True),
}
