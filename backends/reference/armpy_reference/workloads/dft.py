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
        operation, array = self.operation, inputs[0]
        if not outputs[0].size:
            return
        axis = operation.axis % array.ndim
        length = operation.resolved_length(array.shape[axis])
        numbers: Array = array[..., 0].astype(np.promote_types(array.dtype, np.float32))
        if array.shape[-1] == 2:
            numbers = numbers + 1j * array[..., 1]
        if operation.is_inverse and operation.is_onesided:
            outputs[0][..., 0] = np.fft.irfft(numbers, length, axis)
            return
        transform = np.fft.ifft if operation.is_inverse else np.fft.fft
        spectrum = transform(numbers, length, axis)
        if not operation.is_inverse and operation.is_onesided:
            spectrum = spectrum.take(range(outputs[0].shape[axis]), axis)
        outputs[0][..., 0], outputs[0][..., 1] = spectrum.real, spectrum.imag
