"""SignatureRunner: a signature of a model, called with its inputs by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from armpy_compat.litert.model_runs import ModelRuns
from armpy_compat.litert.tensor_details import Details


class SignatureRunner:
    """A signature that can be called; made by `Interpreter.get_signature_runner`.

    Parameters
    ----------
    interpreter : Interpreter
    signature_key : str
        Name of the signature.

    Raises
    ------
    ValueError
        If one of them is missing, or the model has no such signature.
    """

    # Any: an Interpreter, whose module imports this one.
    def __init__(self, interpreter: Any = None, signature_key: str | None = None) -> None:
        if not interpreter:
            raise ValueError("None interpreter provided.")
        if not signature_key:
            raise ValueError("None signature_key provided.")
        runs: ModelRuns = interpreter._runs
        signatures = runs.file.signatures
        if signature_key not in signatures:
            raise ValueError(f'Invalid signature_key provided: "{signature_key}".')
        signature = signatures[signature_key]
        self._runs = runs
        self._inputs = signature.inputs
        self._outputs = signature.outputs
        self._subgraph_index = signature.subgraph

    def __call__(self, **kwargs: Any) -> dict[str, Any]:  # Any: arrays, or what has a shape
        """Run with the inputs by name, resizing them to the given shapes.

        Returns
        -------
        dict of str to ndarray
            Copies of the outputs by name; scalars where they have no dimensions.

        Raises
        ------
        ValueError
            If an input is missing, unknown, or does not fit.
        RuntimeError
            If the model does not take the shapes, or the run fails.
        """
        if len(kwargs) != len(self._inputs):
            raise ValueError(
                "Invalid number of inputs provided for running a SignatureDef,"
                f" expected {len(self._inputs)} vs provided {len(kwargs)}"
            )
        run = self._runs[self._subgraph_index]
        for name, value in kwargs.items():
            if name not in self._inputs:
                raise ValueError(f"Invalid Input name ({name}) for SignatureDef")
            run.resize(self._inputs[name], value.shape, strict=False)
        run.allocate()
        for name, value in kwargs.items():
            run.set(self._inputs[name], value)
        run.invoke()
        return {name: run.get(index) for name, index in self._outputs.items()}

    def get_input_details(self) -> dict[str, Details]:
        """Describe the inputs by name, see `Interpreter.get_input_details`."""
        return self._details(self._inputs)

    def get_output_details(self) -> dict[str, Details]:
        """Describe the outputs by name, see `Interpreter.get_output_details`."""
        return self._details(self._outputs)

    def _details(self, tensors: Mapping[str, int]) -> dict[str, Details]:
        """Descriptions of tensors by name."""
        subgraph = self._subgraph_index
        return {name: self._runs.details(index, subgraph) for name, index in tensors.items()}
