"""Compiled subgraphs: interpreters, and the .tflite models in files that they are made of."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from armpy.backend import (
    IEngineProgram,
    IEnginePrograms,
    OptionValue,
    OptionValues,
    ProgramCheck,
)
from armpy.errors import BackendError, UnimplementedError
from armpy.ops.operation import Array
from armpy_litert.engine import (
    delegate_options,
    engine_version,
    interpreter_module,
    load_delegate,
)

BACKEND_ID = "LiteRt"


class LiteRtProgram(IEngineProgram):
    """An interpreter of one subgraph.

    Parameters
    ----------
    model : bytes
        A .tflite model.
    num_threads : int
        0 is one per core.
    delegate : str
        Path or name of the delegate's library; XNNPACK if empty.
    options : str
        The delegate's options, a JSON object.

    Raises
    ------
    UnimplementedError
        If the interpreter refuses the model, or the delegate does not take all of it.
    """

    def __init__(self, model: bytes, num_threads: int, delegate: str, options: str) -> None:
        self._model = model
        # An interpreter has one set of tensors: one execution at a time.
        self._lock = threading.Lock()
        delegates = []
        if delegate:
            chosen = delegate_options(options, BACKEND_ID)
            delegates.append(load_delegate(delegate, chosen, BACKEND_ID))
        module = interpreter_module(BACKEND_ID)
        # Beside another delegate, XNNPACK would take what that one leaves.
        kinds = module.OpResolverType
        kind = kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES if delegate else kinds.AUTO
        try:
            self._interpreter = module.Interpreter(
                model_content=model,
                num_threads=num_threads or None,
                experimental_delegates=delegates or None,
                experimental_op_resolver_type=kind,
            )
            self._interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            text = str(error).strip().partition("\n")[0]
            raise UnimplementedError(f"LiteRT refuses it: {text}", where=BACKEND_ID) from error
        if delegate:
            self._require_delegated(delegate)
        self._inputs = self._indexes(self._interpreter.get_input_details())
        self._outputs = self._indexes(self._interpreter.get_output_details())

    @property
    def model(self) -> bytes:
        """The model that it was compiled from."""
        return self._model

    def execute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy the inputs into the interpreter, invoke it, and copy the outputs."""
        interpreter = self._interpreter
        with self._lock:
            for index, array in zip(self._inputs, inputs, strict=True):
                interpreter.set_tensor(index, array)
            try:
                interpreter.invoke()
            except RuntimeError as error:
                raise BackendError(str(error), where=BACKEND_ID) from error
            for index, array in zip(self._outputs, outputs, strict=True):
                array[...] = interpreter.tensor(index)()

    def _require_delegated(self, delegate: str) -> None:
        """Refuse layers that the delegate has left to the interpreter's own kernels."""
        # The nodes that a delegate takes stay listed, before the nodes that stand for them.
        details = self._interpreter._get_ops_details()
        partitions = [node for node in details if node["op_name"] == "DELEGATE"]
        covered = {int(i) for node in partitions for i in node["outputs"]}
        wanted = self._indexes(self._interpreter.get_output_details())
        if len(partitions) != 1 or not covered.issuperset(wanted):
            raise UnimplementedError(
                f"the delegate '{delegate}' does not take it", where=BACKEND_ID
            )

    @staticmethod
    def _indexes(details: Sequence[Mapping[str, Any]]) -> list[int]:  # Any: the engine's own
        return [int(detail["index"]) for detail in details]


class LiteRtPrograms(IEnginePrograms):
    """Makes interpreters of .tflite models."""

    def describe(self, options: Mapping[str, object]) -> dict[str, OptionValue]:
        """Threads, the delegate with its options, and the version of LiteRT."""
        return {
            "engine": engine_version(),
            "num_threads": int(str(options.get("num_threads", 0))),
            "delegate": str(options.get("delegate", "")),
            "delegate_options": str(options.get("delegate_options", "")),
        }

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        """Compare the dependencies of a program, if there is an interpreter."""
        interpreter_module(BACKEND_ID)
        return super().check(about, options)

    def compile(self, model: bytes, about: Mapping[str, OptionValue]) -> LiteRtProgram:
        """Make the interpreter, which packs weights."""
        return LiteRtProgram(
            model,
            int(about["num_threads"]),
            str(about["delegate"]),
            str(about["delegate_options"]),
        )
