"""The Neural Networks API: models, compilations and executions with NNAPI's semantics.

Examples
--------
>>> import numpy as np
>>> from armpy.nnapi import Compilation, FuseCode, Model, OperandCode, OperandType, OperationCode
>>> with Model() as model:
...     tensor = OperandType(OperandCode.TENSOR_FLOAT32, (2,))
...     a, b, total = (model.add_operand(tensor) for _ in range(3))
...     activation = model.add_operand(OperandType(OperandCode.INT32))
...     model.set_operand_value(activation, FuseCode.NONE)
...     model.add_operation(OperationCode.ADD, [a, b, activation], [total])
...     model.identify_inputs_and_outputs([a, b], [total])
>>> with Compilation(model) as compilation:
...     compilation.finish()
...     compilation(np.float32([1, 2]), np.float32([10, 20]))
[array([11., 22.], dtype=float32)]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from armpy.errors import NnapiError, ResultCode
    from armpy.nnapi.builder import ModelBuilder
    from armpy.nnapi.builder_values import Value
    from armpy.nnapi.codes import (
        DeviceTypeCode,
        DurationCode,
        FeatureLevel,
        FuseCode,
        OperandCode,
        OperationCode,
        PaddingCode,
        PreferenceCode,
    )
    from armpy.nnapi.compilation import Compilation
    from armpy.nnapi.devices import Device, DeviceManager, default_manager
    from armpy.nnapi.dump import graph_dump
    from armpy.nnapi.execution import (
        DEFAULT_LOOP_TIMEOUT_NS,
        DURATION_UNAVAILABLE,
        MAXIMUM_LOOP_TIMEOUT_NS,
        Execution,
    )
    from armpy.nnapi.memory import Memory
    from armpy.nnapi.model import Model
    from armpy.nnapi.model_description import ModelDescription
    from armpy.nnapi.operand_type import OperandType
    from armpy.nnapi.validation import validate_model, validate_operation
    from armpy.nnapi.versions import compliant_slice, convert, minimum_feature_level
    from armpy.types import Priority

_HOMES = {
    "Compilation": "armpy.nnapi.compilation",
    "DEFAULT_LOOP_TIMEOUT_NS": "armpy.nnapi.execution",
    "DURATION_UNAVAILABLE": "armpy.nnapi.execution",
    "Device": "armpy.nnapi.devices",
    "DeviceManager": "armpy.nnapi.devices",
    "DeviceTypeCode": "armpy.nnapi.codes",
    "DurationCode": "armpy.nnapi.codes",
    "Execution": "armpy.nnapi.execution",
    "FeatureLevel": "armpy.nnapi.codes",
    "FuseCode": "armpy.nnapi.codes",
    "MAXIMUM_LOOP_TIMEOUT_NS": "armpy.nnapi.execution",
    "Memory": "armpy.nnapi.memory",
    "Model": "armpy.nnapi.model",
    "ModelBuilder": "armpy.nnapi.builder",
    "ModelDescription": "armpy.nnapi.model_description",
    "NnapiError": "armpy.errors",
    "OperandCode": "armpy.nnapi.codes",
    "OperandType": "armpy.nnapi.operand_type",
    "OperationCode": "armpy.nnapi.codes",
    "PaddingCode": "armpy.nnapi.codes",
    "PreferenceCode": "armpy.nnapi.codes",
    "Priority": "armpy.types",
    "ResultCode": "armpy.errors",
    "Value": "armpy.nnapi.builder_values",
    "compliant_slice": "armpy.nnapi.versions",
    "convert": "armpy.nnapi.versions",
    "default_manager": "armpy.nnapi.devices",
    "graph_dump": "armpy.nnapi.dump",
    "minimum_feature_level": "armpy.nnapi.versions",
    "validate_model": "armpy.nnapi.validation",
    "validate_operation": "armpy.nnapi.validation",
}
"""Where each public name is; imported when it is first used."""

__all__ = [
    "DEFAULT_LOOP_TIMEOUT_NS",
    "DURATION_UNAVAILABLE",
    "MAXIMUM_LOOP_TIMEOUT_NS",
    "Compilation",
    "Device",
    "DeviceManager",
    "DeviceTypeCode",
    "DurationCode",
    "Execution",
    "FeatureLevel",
    "FuseCode",
    "Memory",
    "Model",
    "ModelBuilder",
    "ModelDescription",
    "NnapiError",
    "OperandCode",
    "OperandType",
    "OperationCode",
    "PaddingCode",
    "PreferenceCode",
    "Priority",
    "ResultCode",
    "Value",
    "compliant_slice",
    "convert",
    "default_manager",
    "graph_dump",
    "minimum_feature_level",
    "validate_model",
    "validate_operation",
]


def __getattr__(name: str) -> object:
    """Import what is used, when it is used."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'armpy.nnapi' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Everything that can be used."""
    return sorted({*globals(), *_HOMES})
