"""The Neural Networks API: models, compilations and executions with NNAPI's semantics.

Examples
--------
>>> import numpy as np
>>> from armpy_nnapi import Compilation, FuseCode, Model, OperandCode, OperandType, OperationCode
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

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
