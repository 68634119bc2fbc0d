"""CpuRef's RoiAlign."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from armpy.numerics.fixed_point import Multiplier
from armpy.ops import RoiAlign
from armpy.ops.operation import Array, require
from armpy.records import dataclass
from armpy.types import DataLayout
from armpy_reference.quantization import Float32Array, saturate, scale_of
from armpy_reference.reals import to_real
from armpy_reference.regions import scaled_regions
from armpy_reference.workload import ReferenceWorkload

_WEIGHT_STEPS = 255


@dataclass(frozen=True, slots=True)
class Samples:
    """Sampling positions of a region along one axis.

    Parameters
    ----------
    lower, upper : ndarray, int64, shape (out, samples)
        Positions of the two neighbours.
    share : ndarray, float32, shape (out, samples)
        Weight of the upper one.
    """

    lower: npt.NDArray[np.int64]
    upper: npt.NDArray[np.int64]
    share: Float32Array

    @classmethod
    def of(
        cls, start: np.float32, end: np.float32, num_out: int, num_samples: int, size: int
    ) -> Samples:
        """Samples of a region from `start` to `end` of an axis with `size` elements."""
        step = max(end - start, np.float32(1)) / np.float32(num_out)
        count = num_samples or max(math.ceil(step), 1)
        distance = step / np.float32(count)
        offsets = (np.arange(count, dtype=np.float32) + np.float32(0.5)) * distance
        bins = np.arange(num_out, dtype=np.float32) * step + start
        positions = bins[:, None] + offsets
        lower = np.floor(positions).astype(np.int64)
        is_last = lower >= size - 1
        lower = np.where(is_last, size - 1, lower)
        share = np.where(is_last, np.float32(0), positions - lower.astype(np.float32))
        return cls(lower, np.where(is_last, lower, lower + 1), share)


class RoiAlignWorkload(ReferenceWorkload[RoiAlign]):
    """Gather the four neighbours of all samples of a region and add them up."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute region by region in NHWC order, which views give for NCHW.

        Raises
        ------
        LayerValidationError
            If a region cannot be used, or the output's scale is too small for the input's.
        """
        operation = self.operation
        values, stored, batches = inputs
        out = outputs[0]
        if operation.data_layout is DataLayout.NCHW:
            values, out = values.transpose(0, 2, 3, 1), out.transpose(0, 2, 3, 1)
        rois = to_real(stored, self.input_infos[1])
        regions = scaled_regions(operation, rois, batches, values.shape, self.info.name)
        for image, (x1, y1, x2, y2), target in zip(values[batches], regions, out, strict=True):
            rows = Samples.of(
                y1, y2, operation.output_size[0], operation.height_samples, image.shape[0]
            )
            columns = Samples.of(
                x1, x2, operation.output_size[1], operation.width_samples, image.shape[1]
            )
            if self.input_infos[0].data_type.is_quantized:
                self._average_stored(image, rows, columns, target)
            else:
                sums = _weighted_sums(image.astype(np.float32), rows, columns, _shares)
                target[...] = sums / np.float32(rows.lower.shape[1] * columns.lower.shape[1])

    def _average_stored(self, image: Array, rows: Samples, columns: Samples, out: Array) -> None:
        """Average stored integers with integer weights, and rescale."""
        source, target = self.input_infos[0], self.info.outputs[0]
        values = np.subtract(image, source.zero_point, dtype=np.int64)
        sums = _weighted_sums(values, rows, columns, _stored_shares)
        count = rows.lower.shape[1] * columns.lower.shape[1]
        factor = float(scale_of(source)) / _WEIGHT_STEPS / float(scale_of(target)) / count
        require(
            factor < 1,
            "the output's scale is too small for the input's",
            expected=f"more than {source.scale / _WEIGHT_STEPS / count:g}",
            actual=target.scale,
        )
        saturate(Multiplier.from_real(factor).apply(sums), target, out)


def _weighted_sums(
    image: Array, rows: Samples, columns: Samples, weigh: Callable[[Float32Array], Array]
) -> Array:
    """Sums of the interpolated samples of each output element (height, width, c)."""
    sums: Array = np.zeros((), image.dtype)
    for y, y_share in ((rows.lower, 1 - rows.share), (rows.upper, rows.share)):
        for x, x_share in ((columns.lower, 1 - columns.share), (columns.upper, columns.share)):
            weights = weigh(y_share[:, :, None, None] * x_share)
            elements = image[y[:, :, None, None], x]
            sums = sums + np.einsum("hiwjc,hiwj->hwc", elements, weights)
    return sums


def _shares(weights: Float32Array) -> Float32Array:
    """Weights as they are."""
    return weights


def _stored_shares(weights: Float32Array) -> npt.NDArray[np.int64]:
    """Weights in steps of 1/255."""
    steps: Float32Array = np.floor(weights * np.float32(_WEIGHT_STEPS) + np.float32(0.5))
    return steps.astype(np.int64)
