from armpy_compat.armnn_format.bindings import (
    ArmnnBinding as ArmnnBinding,
    ArmnnBindings as ArmnnBindings,
    read_bindings as read_bindings,
)
