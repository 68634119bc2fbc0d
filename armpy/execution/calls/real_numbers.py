"""Real outputs: quantised outputs handed over as the numbers that they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from armpy.execution.arrays.conversion import check_output_array
from armpy.execution.calls.run import as_dict
from armpy.tensor import TensorInfo
from armpy.types import DataType

if TYPE_CHECKING:
    from armpy.execution.arrays.tensor_spec import TensorSpec
    from armpy.ops.operation import Array


class RealOutputs(NamedTuple):
    """Outputs of a call: those stored as they are, and quantised ones given as real numbers.

    Parameters
    ----------
    infos : mapping of str to TensorInfo
        Of the quantised outputs.
    stored : dict of str to object, optional
        What the caller has given for the others.
    reals : mapping of str to ndarray
        The caller's arrays for quantised outputs.
    """

    infos: Mapping[str, TensorInfo]
    stored: dict[str, Any] | None  # Any: whatever the caller gives
    reals: Mapping[str, Array]

    @classmethod
    def of(cls, specs: Sequence[TensorSpec], outputs: object) -> RealOutputs:
        """Divide what a caller has given for outputs.

        Raises
        ------
        InvalidArgumentError
            If an array for a quantised output cannot take real numbers.
        """
        infos = {s.name: s.info for s in specs if s.info.quantization and _is_integer(s.info)}
        if outputs is None:
            return cls(infos, None, {})
        given = as_dict("outputs", outputs)
        reals = {
            name: check_output_array(name, TensorInfo(info.shape, DataType.FLOAT32), given[name])
            for name, info in infos.items()
            if given.get(name) is not None
        }
        stored = {name: array for name, array in given.items() if name not in reals}
        return cls(infos, stored or None, reals)

    def finish(self, results: dict[str, Array]) -> dict[str, Array]:
        """The results as the caller is to have them."""
        return {name: self._real(name, array) for name, array in results.items()}

    def _real(self, name: str, stored: Array) -> Array:
        """One result."""
        info = self.infos.get(name)
        if info is None or info.quantization is None:
            return stored
        real = info.quantization.dequantize(stored)
        target = self.reals.get(name)
        if target is None:
            return real
        # Once more, as the shape may depend on values and is known only now.
        check_output_array(name, TensorInfo(real.shape, DataType.FLOAT32), target)
        np.copyto(target, real)
        return target


def _is_integer(info: TensorInfo) -> bool:
    """Whether a tensor's elements are integers."""
    return info.data_type.dtype.kind in "iu"
