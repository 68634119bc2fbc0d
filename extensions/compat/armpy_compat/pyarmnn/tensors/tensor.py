"""PyArmNN's Tensor: memory that results are written to."""

from __future__ import annotations

import numpy as np

from armpy_compat.pyarmnn.tensors.tensor_info import TensorInfo
from armpy_compat.pyarmnn.tensors.tensor_memory import NUMPY_TYPES, TensorMemory


class Tensor(TensorMemory):
    """Memory for results, reused by every call that is given the tensor.

    Takes a TensorInfo, for which it makes an array; another Tensor, whose array it shares; or
    nothing.

    Raises
    ------
    ValueError
        For other arguments, and for a data type that arrays do not have.
    """

    def __init__(self, *args: object) -> None:
        if not args:
            super().__init__(None, None)
        elif isinstance(args[0], TensorInfo):
            kind = NUMPY_TYPES.get(args[0].GetDataType())
            if kind is None:
                raise ValueError("The data type provided for this Tensor is not supported.")
            shaped = np.empty(tuple(args[0].GetShape()) or (0,), kind)
            # Arrays that own their memory are written by calls without a look for overlaps.
            super().__init__(args[0], shaped.reshape(-1), shaped)
        elif isinstance(args[0], Tensor):
            super().__init__(args[0].GetInfo(), args[0].get_memory_area(), args[0].shaped)
        else:
            raise ValueError(
                "Incorrect number of arguments or type of arguments provided to create Tensor."
            )

    def __copy__(self) -> Tensor:
        return Tensor(self)
