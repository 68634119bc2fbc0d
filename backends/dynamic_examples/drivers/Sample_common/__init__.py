"""Code that the sample drivers share.

It is found as ``.Sample_common`` because it lies beside them and has the same vendor's name.
"""

from .faults import Faults
from .files import SamplePrograms
from .kernels import Floats, SampleSupport
from .program import Program, views_of

__all__ = [
    "Faults",
    "Floats",
    "Program",
    "SamplePrograms",
    "SampleSupport",
    "views_of",
]
