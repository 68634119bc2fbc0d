"""Names that programs import from the modules that SWIG generates for PyArmNN."""

from armpy_compat.pyarmnn import *
from armpy_compat.pyarmnn.constants import *
from armpy_compat.pyarmnn.quantization import *

globals().pop("ProfilerData")  # no class of SWIG
