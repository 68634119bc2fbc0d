"""CpuRef's Dft."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import Dft
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class DftWorkload(ReferenceWorkload[Dft]):
    """NumPy's fast Fourier transforms."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """All signals at once."""
        operation, given = self.operation, inputs[0]
        if not outputs[0].size:
            return
        axis = operation.axis % given.ndim
        length = operation.resolved_length(given.shape[axis])
        numbers: Array = given[..., 0].astype(np.promote_types(given.dtype, np.float32))
        if given.shape[-1] == 2:
            numbers = numbers + 1j * given[..., 1]
        if operation.is_inverse and operation.is_onesided:
            outputs[0][..., 0] = np.fft.irfft(numbers, length, axis)
            return
        transform = np.fft.ifft if operation.is_inverse else np.fft.fft
        found = transform(numbers, length, axis)
        if not operation.is_inverse and operation.is_onesided:
            found = found.take(range(outputs[0].shape[axis]), axis)
        outputs[0][..., 0], outputs[0][..., 1] = found.real, found.imag
