"""Files of Arm NN's own format, .armnn: read into networks, and written from them.

`armpy.load` reads them when armpy-compat is installed.
"""

from armpy_compat.armnn_format.bindings import ArmnnBinding, ArmnnBindings, read_bindings
from armpy_compat.armnn_format.writer import write

__all__ = ["ArmnnBinding", "ArmnnBindings", "read_bindings", "write"]
