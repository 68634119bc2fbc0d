from armpy_compat.armnn_format.bindings import (
    ArmnnBinding as ArmnnBinding,
    ArmnnBindings as ArmnnBindings,
    read_bindings as read_bindings,
)
from armpy_compat.armnn_format.writer import write as write
