"""Code that the backends of this directory share.

Those in one file import it as ``from .Example_common import ...``, which is found because it lies
beside them and begins with the same vendor's name.
"""

from .elementwise import (
    ADDITION,
    MULTIPLICATION,
    ElementwiseBackend,
    ElementwiseFactory,
    ElementwiseWorkload,
    Floats,
    Kernel,
    add,
)

__all__ = [
    "ADDITION",
    "MULTIPLICATION",
    "ElementwiseBackend",
    "ElementwiseFactory",
    "ElementwiseWorkload",
    "Floats",
    "Kernel",
    "add",
]
