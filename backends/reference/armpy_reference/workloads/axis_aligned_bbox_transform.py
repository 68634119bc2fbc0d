"""CpuRef's AxisAlignedBboxTransform."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import AxisAlignedBboxTransform
from armpy.ops.operation import Array
from armpy_reference.boxes import check_batches, check_corners, transform
from armpy_reference.reals import from_real, to_real
from armpy_reference.workload import ReferenceWorkload


class AxisAlignedBboxTransformWorkload(ReferenceWorkload[AxisAlignedBboxTransform]):
    """Transform in float32, all classes of a box at once."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Round once.

        Raises
        ------
        LayerValidationError
            If an image is not there, or corners are the wrong way round.
        """
        stored, _, batches, image_info = inputs
        check_batches(batches, len(image_info), self.info.name)
        check_corners(stored, self.info.name)
        rois, deltas, _, sizes = map(to_real, inputs, self.input_infos)
        boxes = transform(
            rois[:, None, :],
            deltas.reshape(len(deltas), deltas.shape[1] // 4, 4),
            sizes[batches][:, None, :],
        )
        outputs[0][...] = from_real(boxes.reshape(deltas.shape), self.info.outputs[0])
