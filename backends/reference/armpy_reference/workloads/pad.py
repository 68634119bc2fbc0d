"""CpuRef's Pad."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.core.numerics.rounding import round_half_away
from armpy.ops import Pad, PaddingMode
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload

_NUMPY_MODES = {
    PaddingMode.REFLECT: "reflect",
    PaddingMode.SYMMETRIC: "symmetric",
    PaddingMode.EDGE: "edge",
    PaddingMode.WRAP: "wrap",
}


class PadWorkload(ReferenceWorkload[Pad]):
    """Fill the output and copy the input into it, or gather repeated positions."""

    def prepare(self) -> None:
        """Work out where the input lies, its surroundings, and the repeated parts."""
        shape = self.info.outputs[0].known_shape
        pads = self.operation.pad_list or ()
        self.stored_value = self._stored_value()
        self.inside = tuple(
            slice(before, size - after) for size, (before, after) in zip(shape, pads, strict=True)
        )
        mode = _NUMPY_MODES.get(self.operation.padding_mode)
        if mode is not None:
            sizes = (size - sum(pair) for size, pair in zip(shape, pads, strict=True))
            self.places = np.ix_(
                *(
                    np.pad(np.arange(size), pair, mode)  # type: ignore[call-overload]  # a mode
                    for size, pair in zip(sizes, pads, strict=True)
                )
            )

    def _stored_value(self) -> float | str:
        """The attribute ``pad_value`` as it is stored; an empty string in a tensor of strings."""
        info, value = self.info.outputs[0], self.operation.pad_value
        if info.data_type.is_string:
            return ""
        if not info.data_type.is_quantized:
            return value
        stored = info.zero_point + int(round_half_away(value / info.scale))
        lowest, highest = info.data_type.integer_range
        return min(max(stored, lowest), highest)

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Pad; any data type."""
        if self.operation.padding_mode in _NUMPY_MODES:
            outputs[0][...] = inputs[0][self.places]
            return
        operand = inputs[1] if len(inputs) > 1 else None
        outputs[0][...] = self.stored_value if operand is None else operand.reshape(())
        outputs[0][self.inside] = inputs[0]
