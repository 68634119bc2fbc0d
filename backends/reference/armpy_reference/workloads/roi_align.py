"""CpuRef's RoiAlign."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.core.numerics.fixed_point import Multiplier
from armpy.ops import PoolingAlgorithm, RoiAlign
from armpy.ops.operation import Array, require
from armpy.types import DataLayout
from armpy_reference.boxes import check_batches
from armpy_reference.quantization import Float32Array, saturate, scale_of
from armpy_reference.reals import to_real
from armpy_reference.regions import scaled_regions
from armpy_reference.workload import ReferenceWorkload

_WEIGHT_STEPS = 255


@dataclass(frozen=True, slots=True)
class Samples:
    """Sampling positions of a region along one axis."""

    lower: npt.NDArray[np.int64]
    upper: npt.NDArray[np.int64]
    """`lower` and `upper`: shape (out, samples). Positions of the two neighbours."""
    share: Float32Array
    """Shape (out, samples). Weight of the upper one."""

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


@dataclass(frozen=True, slots=True)
class FreeSamples:
    """Sampling positions, along one axis, of a region anywhere that are not 0."""

    samples: Samples
    inside: Float32Array
    """Shape (out, samples). 1 for samples that count, 0 for those outside of the image."""
    count: int  # samples in an output element, inside or not

    @classmethod
    def of(
        cls, start: float, length: float, num_out: int, num_samples: int, size: int
    ) -> FreeSamples:
        """Samples of a region of an axis with `size` elements."""
        step = length / num_out
        count = num_samples or max(math.ceil(step), 0)
        distance = step / max(count, 1)
        bins = start + np.arange(num_out) * step
        first, most = np.zeros((num_out, 1)), count
        if distance > 0:  # no more than may lie within the image
            first = np.clip(np.ceil((-1 - bins) / distance - 0.5), 0, count)[:, None]
            most = int(min(count, (size + 1) / distance + 2))
        number = first + np.arange(most)
        where = bins[:, None] + (number + 0.5) * distance
        inside = (where >= -1) & (where <= size) & (number < count)
        where = np.clip(where, 0, size - 1)
        lower = np.minimum(np.floor(where).astype(np.int64), max(size - 2, 0))
        upper = np.minimum(lower + 1, size - 1)
        share = (where - lower).astype(np.float32)
        return cls(Samples(lower, upper, share), inside.astype(np.float32), count)


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
        is_stored = self.input_infos[0].data_type.is_quantized
        # Channels side by side, as all of a sample's are gathered at once.
        values = np.ascontiguousarray(values, None if is_stored else np.float32)
        rois = to_real(stored, self.input_infos[1])
        if operation.is_free or operation.half_pixel or not self._is_mean:
            self._sample_freely(values, rois, batches, out)
            return
        regions = scaled_regions(operation, rois, batches, values.shape, self.info.name)
        for image, (x1, y1, x2, y2), target in zip(values[batches], regions, out, strict=True):
            rows = Samples.of(
                y1, y2, operation.output_size[0], operation.height_samples, image.shape[0]
            )
            columns = Samples.of(
                x1, x2, operation.output_size[1], operation.width_samples, image.shape[1]
            )
            if is_stored:
                self._average_stored(image, rows, columns, target)
            else:
                sums = _weighted_sums(image, rows, columns, _shares)
                target[...] = sums / np.float32(rows.lower.shape[1] * columns.lower.shape[1])

    @property
    def _is_mean(self) -> bool:
        """Return whether samples are averaged."""
        return self.operation.algorithm is PoolingAlgorithm.AVERAGE

    def _sample_freely(self, values: Array, rois: Float32Array, batches: Array, out: Array) -> None:
        """Sample regions that may lie anywhere, or have to be checked first."""
        operation = self.operation
        if operation.is_free:
            check_batches(batches, len(values), self.info.name)
            strides = np.array([operation.width_stride, operation.height_stride] * 2, np.float32)
            regions: Float32Array = rois * (np.float32(1) / strides)
            require(
                bool(np.isfinite(regions).all()),
                "a region cannot be used",
                expected="corners that are finite",
                actual="infinite ones, or NaN",
            )
        else:
            regions = scaled_regions(operation, rois, batches, values.shape, self.info.name)
        for number, corners, target in zip(batches, regions, out, strict=True):
            image = values[number]
            rows, columns = (
                self._along(corners[1 - axis], corners[3 - axis], axis, image.shape[axis])
                for axis in range(2)
            )
            if self._is_mean:
                target[...] = _means(image, rows, columns)
            else:
                target[...] = _largest(image, rows, columns)

    def _along(self, start: np.float32, end: np.float32, axis: int, size: int) -> FreeSamples:
        operation = self.operation
        offset = 0.5 if operation.half_pixel else 0.0
        length = float(end) - float(start)
        if not operation.half_pixel:
            length = max(length, 1.0)
        count = (operation.height_samples, operation.width_samples)[axis]
        first = float(start) - offset
        return FreeSamples.of(first, length, operation.output_size[axis], count, size)

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
    image: Array,
    rows: Samples,
    columns: Samples,
    weigh: Callable[[Float32Array], Array],
    inside: Float32Array | None = None,
) -> Array:
    """Sums of the interpolated samples of each output element (height, width, c)."""
    sums: Array = np.zeros((), image.dtype)
    for elements, weights in _neighbours(image, rows, columns, inside):
        sums = sums + np.einsum("hiwjc,hiwj->hwc", elements, weigh(weights))
    return sums


def _neighbours(
    image: Array, rows: Samples, columns: Samples, inside: Float32Array | None
) -> Iterator[tuple[Array, Float32Array]]:
    """The four neighbours of all samples (h, i, w, j, c), and their weights (h, i, w, j).

    Elements are 0 where samples are not `inside`: NaN times a weight of 0 would be NaN.
    """
    outside = None if inside is None or inside.all() else inside == 0
    for y, y_share in ((rows.lower, 1 - rows.share), (rows.upper, rows.share)):
        for x, x_share in ((columns.lower, 1 - columns.share), (columns.upper, columns.share)):
            elements = image[y[:, :, None, None], x]
            if outside is not None:
                elements[outside] = 0
            yield elements, y_share[:, :, None, None] * x_share


def _means(image: Array, rows: FreeSamples, columns: FreeSamples) -> Array:
    """Means of the samples of each output element (height, width, c)."""
    counts = rows.inside[:, :, None, None] * columns.inside
    sums = _weighted_sums(image, rows.samples, columns.samples, _shares, counts)
    return sums / np.float32(max(rows.count * columns.count, 1))


def _largest(image: Array, rows: FreeSamples, columns: FreeSamples) -> Array:
    """Largest weighted neighbours of each output element (height, width, c)."""
    counts = rows.inside[:, :, None, None] * columns.inside
    # Samples that are left out beforehand are 0, as others outside of the image.
    is_whole = rows.count == counts.shape[1] and columns.count == counts.shape[3]
    least = np.float32(-np.inf if is_whole and counts.size else 0)
    maxima: Array = np.full((), least, np.float32)
    for elements, weights in _neighbours(image, rows.samples, columns.samples, counts):
        parts = elements * weights[..., None]
        maxima = np.maximum(maxima, parts.max(axis=(1, 3), initial=least))
    return maxima


def _shares(weights: Float32Array) -> Float32Array:
    return weights


def _stored_shares(weights: Float32Array) -> npt.NDArray[np.int64]:
    steps: Float32Array = np.floor(weights * np.float32(_WEIGHT_STEPS) + np.float32(0.5))
    return steps.astype(np.int64)
