"""Files of one custom operator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from armpy_testing.models.tflite_writer import TfliteModel

Floats = npt.NDArray[np.float32]


def custom_file(
    code: str,
    inputs: Sequence[Floats | tuple[int, ...]],
    outputs: Sequence[tuple[int, ...]],
    options: bytes,
) -> bytes:
    """A file of one custom operator; arrays are constants, shapes are inputs."""
    model = TfliteModel()
    graph = model.subgraph()
    operands = [
        graph.tensor(f"x{i}", operand)
        if isinstance(operand, tuple)
        else graph.tensor(f"x{i}", operand.shape, data=operand)
        for i, operand in enumerate(inputs)
    ]
    results = [graph.tensor(f"y{i}", shape) for i, shape in enumerate(outputs)]
    graph.operator("CUSTOM", operands, results, custom_code=code, custom_options=options)
    graph.inputs(
        *(x for x, operand in zip(operands, inputs, strict=True) if isinstance(operand, tuple))
    )
    graph.outputs(*results)
    return model.to_bytes()
