"""Code that the backends of this directory share.

Those in one file import it as ``from .Example_common import ...``, which is found because it lies
beside them and begins with the same vendor's name.
"""

from .elementwise import (
    MULTIPLICATION,
    ElementwiseBackend,
    Floats,
    add,
)

__all__ = [
    "MULTIPLICATION",
    "ElementwiseBackend",
    "Floats",
    "add",
]
