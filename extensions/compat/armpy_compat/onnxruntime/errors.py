"""Errors of ONNX Runtime's names and texts, made of armpy's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import onnx
from onnx import TensorProto

from armpy.errors import (
    ArmpyError,
    BackendCapabilityError,
    BackendError,
    BackendUnavailableError,
    InvalidArgumentError,
    MemoryLimitError,
    ParserError,
    UnimplementedError,
    UnsupportedOperatorError,
)
from armpy_compat.onnxruntime.element_types import WORDS, tensor_word

_PREFIXES: dict[type[Exception], str] = {}


def _status(name: str, code: int, word: str) -> type[Exception]:
    """Make the exception of a status code."""
    module = "onnxruntime.capi.onnxruntime_pybind11_state"
    kind = type(name, (Exception,), {"__module__": module, "__doc__": f"Status {code}, {word}."})
    _PREFIXES[kind] = f"[ONNXRuntimeError] : {code} : {word} : "
    return kind


Fail = _status("Fail", 1, "FAIL")
InvalidArgument = _status("InvalidArgument", 2, "INVALID_ARGUMENT")
NoSuchFile = _status("NoSuchFile", 3, "NO_SUCHFILE")
NoModel = _status("NoModel", 4, "NO_MODEL")
EngineError = _status("EngineError", 5, "ENGINE_ERROR")
RuntimeException = _status("RuntimeException", 6, "RUNTIME_EXCEPTION")
InvalidProtobuf = _status("InvalidProtobuf", 7, "INVALID_PROTOBUF")
ModelLoaded = _status("ModelLoaded", 8, "MODEL_LOADED")
NotImplemented = _status("NotImplemented", 9, "NOT_IMPLEMENTED")
InvalidGraph = _status("InvalidGraph", 10, "INVALID_GRAPH")
EPFail = _status("EPFail", 11, "EP_FAIL")
ModelLoadCanceled = _status("ModelLoadCanceled", 12, "MODEL_LOAD_CANCELED")
ModelRequiresCompilation = _status("ModelRequiresCompilation", 13, "MODEL_REQUIRES_COMPILATION")
NotFound = _status("NotFound", 14, "NOT_FOUND")

_AT_LOAD: tuple[tuple[type[ArmpyError], type[Exception]], ...] = (
    (UnsupportedOperatorError, NotImplemented),
    (ParserError, Fail),
    (UnimplementedError, NotImplemented),
    (BackendCapabilityError, NotImplemented),
    (BackendUnavailableError, EPFail),
    (BackendError, EPFail),
    (MemoryLimitError, RuntimeException),
    (InvalidArgumentError, InvalidArgument),
)
"""Kinds of armpy's errors while a model is loaded, the first that fits; others are `Fail`."""

_AT_RUN: tuple[tuple[type[ArmpyError], type[Exception]], ...] = (
    (BackendError, EPFail),
    (InvalidArgumentError, InvalidArgument),
    (ArmpyError, Fail),
)
"""Kinds of armpy's errors while a model runs."""


def status_error(kind: type[Exception], text: str) -> Exception:
    """Make an error with the status in front of its text, as ONNX Runtime writes it."""
    return kind(_PREFIXES[kind] + text)


def load_error(error: ArmpyError, path: str | None, model: Any) -> Exception:
    """Make the error for armpy's while a model is loaded.

    Parameters
    ----------
    error : ArmpyError
        Error whose text becomes part of the new one's.
    path : str, optional
        The model's; None if it is given as bytes.
    model : onnx.ModelProto

    Notes
    -----
    Faults of one node are `InvalidGraph`; those of the graph are `Fail`, but for an input that
    nothing writes.
    """
    kind, text = _first(_AT_LOAD, error), str(error)
    wrong_type = next(_wrong_types(model), None)
    unread = re.search(r"the tensor '(.*?)' is read and not written before", text)
    if wrong_type is not None:
        kind, text = InvalidGraph, f"This is an invalid model. {wrong_type}"
    elif isinstance(error, UnsupportedOperatorError):
        known = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")
        unknown = [node for node in model.graph.node if node.domain not in known]
        imported = {opset.domain for opset in model.opset_import}
        nowhere = [node for node in model.graph.node if _is_nowhere(node)]
        if nowhere or (unknown and unknown[0].domain not in imported):
            kind, text = InvalidGraph, f"This is an invalid model. {text}"
        elif unknown:
            name = f"{unknown[0].domain}:{unknown[0].op_type}(-1)"
            kind, text = Fail, f"Fatal error: {name} is not a registered function/op"
    elif "the model cannot be understood" in text and "is there already" not in text:
        kind, text = InvalidGraph, f"This is an invalid model. {text}"
    elif unread:
        name = f"Node input '{unread[1]}' is not a graph input, initializer, or output of a"
        kind, text = InvalidArgument, f"Invalid model. {name} previous node."
    elif "in a circle" in text:
        text = "This is an invalid model. Error: the graph is not acyclic."
    return status_error(kind, text if path is None else f"Load model from {path} failed:{text}")


def _is_nowhere(node: Any) -> bool:  # Any: onnx.NodeProto
    """Return whether a node is of ONNX's own domain, which has no such operator."""
    return node.domain in ("", "ai.onnx") and not onnx.defs.has(node.op_type)


def _wrong_types(model: Any) -> Iterator[str]:  # Any: onnx.ModelProto
    """Inputs of nodes that have a type which the operator's definition does not allow.

    Notes
    -----
    Only of values whose types the file states; a tensor between two nodes may be without.
    """
    graph = model.graph
    values = (*graph.input, *graph.value_info)
    numbers = {value.name: value.type.tensor_type.elem_type for value in values}
    numbers |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    versions = {_domain(opset): opset.version for opset in model.opset_import}
    for node in graph.node:
        version = versions.get(_domain(node))
        if version is None or not onnx.defs.has(node.op_type, version, _domain(node)):
            continue
        parameters = onnx.defs.get_schema(node.op_type, version, _domain(node)).inputs
        for index, name in enumerate(node.input[: _most_inputs(parameters)]):
            parameter = parameters[min(index, len(parameters) - 1)]
            number = numbers.get(name, TensorProto.UNDEFINED)
            if number in WORDS and tensor_word(number) not in parameter.types:
                yield (
                    f"Type Error: Type '{tensor_word(number)}' of input parameter ({name}) of "
                    f"operator ({node.op_type}) in node ({node.name}) is invalid."
                )


def _most_inputs(parameters: Sequence[Any]) -> int | None:  # Any: OpSchema.FormalParameter
    """Maximum number of inputs of an operator; None if there is no limit."""
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    is_open = bool(parameters) and parameters[-1].option == variadic
    return None if is_open else len(parameters)


def _domain(of: Any) -> str:  # Any: onnx.NodeProto or OperatorSetIdProto
    """The domain, which has two names if it is ONNX's own."""
    return "" if of.domain == "ai.onnx" else of.domain


def run_error(error: ArmpyError) -> Exception:
    """Make the error for armpy's while a model runs."""
    return status_error(_first(_AT_RUN, error), str(error))


def _first(
    kinds: tuple[tuple[type[ArmpyError], type[Exception]], ...], error: ArmpyError
) -> type[Exception]:
    """The kind of the first row that the error belongs to."""
    return next((kind for of, kind in kinds if isinstance(error, of)), Fail)
