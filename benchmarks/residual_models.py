"""Writes ResNet-like int8 networks with random weights, for `compare_peers`.

Two networks of residual blocks with 64 to 512 channels on images of 56 down to 7 pixels a side:
`basic` has two convolutions of 3x3 in a block, `bottleneck` one of 1x1, 3x3 and 1x1 each. They
need no TensorFlow: the writer of the tests writes them::

    python -m benchmarks.residual_models FOLDER
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from armpy_testing.models.tflite_writer import Subgraph, Tensor, TfliteModel

WIDTHS = (64, 128, 256, 512)
SIZE = 56
BLOCKS_OF_A_WIDTH = 2
RANGE = 6.0
"""Largest value of a tensor; sums are scaled so that few go beyond it."""


@dataclass(frozen=True, slots=True)
class Image:
    """A tensor of the network under construction: int8 (1, size, size, channels)."""

    tensor: Tensor
    size: int
    channels: int


class Writer:
    """Writes layers of int8, one after the other, with seeded weights per channel."""

    def __init__(self) -> None:
        self.model = TfliteModel(description="armpy benchmark model")
        self.graph: Subgraph = self.model.subgraph()
        self._random = np.random.default_rng(0)
        self._count = 0

    def image(self, size: int, channels: int, *, is_positive: bool = False) -> Image:
        """A tensor of [-RANGE, RANGE], or [0, RANGE]."""
        scale, zero_point = (RANGE / 255, -128) if is_positive else (RANGE / 127, 0)
        self._count += 1
        name, shape = f"image{self._count}", (1, size, size, channels)
        tensor = self.graph.tensor(name, shape, "INT8", scale=scale, zero_point=zero_point)
        return Image(tensor, size, channels)

    def convolution(
        self, source: Image, width: int, side: int, stride: int = 1, *, is_positive: bool = True
    ) -> Image:
        """CONV_2D with `width` filters of `side` by `side`, padded to the same size."""
        target = self.image(-(-source.size // stride), width, is_positive=is_positive)
        shape = (width, side, side, source.channels)
        values = self._random.integers(-127, 128, shape, np.int8)
        spread = math.sqrt(2 / math.prod(shape[1:])) / 73  # 73: deviation of the integers
        scales = (spread * self._random.uniform(0.5, 1, width)).astype(np.float32)
        weights = self.graph.tensor(
            f"weights{self._count}", shape, "INT8", data=values, scale=scales.tolist()
        )
        in_scale = RANGE / 127 if source.channels == 3 else RANGE / 255
        bias = self.graph.tensor(
            f"bias{self._count}",
            (width,),
            "INT32",
            data=self._random.integers(-500, 500, width, np.int32),
            scale=(scales * in_scale).tolist(),
        )
        self.graph.operator(
            "CONV_2D",
            [source.tensor, weights, bias],
            [target.tensor],
            {
                "padding": "SAME",
                "stride_w": stride,
                "stride_h": stride,
                "dilation_w_factor": 1,
                "dilation_h_factor": 1,
                "fused_activation_function": "RELU" if is_positive else "NONE",
            },
            version=3,
        )
        return target

    def addition(self, first: Image, second: Image) -> Image:
        """ADD with a RELU after it."""
        target = self.image(first.size, first.channels, is_positive=True)
        options = {"fused_activation_function": "RELU"}
        self.graph.operator(
            "ADD", [first.tensor, second.tensor], [target.tensor], options, version=2
        )
        return target


def network(*, is_bottleneck: bool) -> bytes:
    """One of the networks as a .tflite file."""
    writer = Writer()
    source = writer.image(SIZE, 3)
    value = writer.convolution(source, WIDTHS[0], 3)
    for level, width in enumerate(WIDTHS):
        for number in range(BLOCKS_OF_A_WIDTH):
            stride = 2 if level and not number else 1
            if is_bottleneck:
                inner = writer.convolution(value, max(WIDTHS[0], width // 2), 1)
                inner = writer.convolution(inner, inner.channels, 3, stride)
                inner = writer.convolution(inner, width, 1, is_positive=False)
            else:
                inner = writer.convolution(value, width, 3, stride)
                inner = writer.convolution(inner, width, 3, is_positive=False)
            if inner.channels != value.channels:
                value = writer.convolution(value, width, 1, stride, is_positive=False)
            value = writer.addition(inner, value)
    writer.graph.inputs(source.tensor)
    writer.graph.outputs(value.tensor)
    return writer.model.to_bytes()


def main() -> None:
    """Write both networks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, is_bottleneck in (("basic", False), ("bottleneck", True)):
        path = folder / f"residual_{name}_int8.tflite"
        path.write_bytes(network(is_bottleneck=is_bottleneck))
        print(f"{path} {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
