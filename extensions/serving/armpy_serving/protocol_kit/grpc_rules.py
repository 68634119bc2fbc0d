"""Rules over gRPC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from armpy_serving.contents import RAW_ONLY, bytes_of, contents_of
from armpy_serving.protocol_kit.answers import BrokenRuleError, checked_message, require
from armpy_serving.protocol_kit.messages import message_classes
from armpy_serving.protocol_kit.rules import ProtocolRule, applies, require_equal
from armpy_serving.protocol_kit.target import CallError, TriedServer

_CLIENT_CODES = ("INVALID_ARGUMENT", "NOT_FOUND", "OUT_OF_RANGE", "UNIMPLEMENTED")
"""Codes by which a server says that the request is at fault."""


def _called(target: TriedServer, name: str, request: Any) -> Any:  # Any: protobuf's
    """Answer of a call that has to be answered."""
    assert target.call is not None  # rules of gRPC are not tried without
    try:
        return target.call(name, request)
    except CallError as error:
        raise BrokenRuleError(f"a right call: {error}") from error


def _message(kind: str, /, **fields: object) -> Any:  # Any: protobuf's
    return message_classes()[kind](**fields)


def _request(target: TriedServer, *, raw: bool) -> Any:  # Any: protobuf's
    """A right request."""
    request = _message("ModelInferRequest", model_name=target.model)
    for tensor in target.inputs:
        entry = request.inputs.add(**tensor.entry())
        if raw:
            request.raw_input_contents.append(bytes_of(tensor.array))
        else:
            applies(tensor.datatype not in RAW_ONLY, f"{tensor.datatype} has no typed contents")
            field, elements = contents_of(tensor.datatype, tensor.array)
            getattr(entry.contents, field).extend(elements)
    return request


def _states(call: str, field: str, target: TriedServer) -> None:
    request = _message(f"{call}Request")
    if call.startswith("Model"):
        request.name = target.model
    require(getattr(_called(target, call, request), field), f"{field} is false")


def _server_metadata(target: TriedServer) -> None:
    answer = _called(target, "ServerMetadata", _message("ServerMetadataRequest"))
    require(answer.name, "the server has no name")
    require(answer.version, "the server has no version")


def _model_metadata(target: TriedServer) -> None:
    answer = _called(target, "ModelMetadata", _message("ModelMetadataRequest", name=target.model))
    require(answer.name == target.model, f"the name is {answer.name!r}")
    for kind in ("inputs", "outputs"):
        actual = [(t.name, t.datatype, [*t.shape]) for t in getattr(answer, kind)]
        expected = [(e["name"], e["datatype"], [*e["shape"]]) for e in target.metadata[kind]]
        require(actual == expected, f"{kind} {actual}, over HTTP {expected}")


def _same_answer(target: TriedServer, *, raw: bool) -> None:
    answer = _called(target, "ModelInfer", _request(target, raw=raw))
    require(answer.model_name == target.model, f"the answer is of model {answer.model_name!r}")
    require_equal(checked_message(answer), target.outputs)


def _id(target: TriedServer) -> None:
    request = _request(target, raw=True)
    request.id = "armpy-42"
    actual = _called(target, "ModelInfer", request).id
    require(actual == "armpy-42", f"the answer's id is {actual!r}, sent was 'armpy-42'")


def _chosen_output(target: TriedServer) -> None:
    name, array = next(iter(target.outputs.items()))
    request = _request(target, raw=True)
    request.outputs.add(name=name)
    require_equal(checked_message(_called(target, "ModelInfer", request)), {name: array})


Change = Callable[[TriedServer, Any], object]  # Any: protobuf's
"""Spoils a right request, whose contents are raw."""


def _set_first(**fields: object) -> Change:
    def change(_: TriedServer, request: Any) -> None:  # Any: protobuf's
        for name, value in fields.items():
            if isinstance(value, list):
                getattr(request.inputs[0], name)[:] = value
            else:
                setattr(request.inputs[0], name, value)

    return change


def _missing(_: TriedServer, request: Any) -> None:  # Any: protobuf's
    del request.inputs[-1]
    del request.raw_input_contents[-1]


def _twice(_: TriedServer, request: Any) -> None:  # Any: protobuf's
    request.inputs.append(request.inputs[0])
    request.raw_input_contents.append(request.raw_input_contents[0])


def _unknown_input(target: TriedServer, request: Any) -> None:  # Any: protobuf's
    _twice(target, request)
    request.inputs[-1].name = "armpy_other"


def _other_datatype(target: TriedServer, request: Any) -> None:  # Any: protobuf's
    tensor = target.inputs[0]
    request.inputs[0].datatype = "INT64" if tensor.datatype == "FP64" else "FP64"
    request.raw_input_contents[0] = bytes(8 * tensor.array.size)


def _other_rank(_: TriedServer, request: Any) -> None:  # Any: protobuf's
    request.inputs[0].shape[:] = [1, 1, 1, 1, 1, 1, *request.inputs[0].shape]


def _raw(change: Callable[[bytes], bytes]) -> Change:
    def apply(_: TriedServer, request: Any) -> None:  # Any: protobuf's
        request.raw_input_contents[0] = change(request.raw_input_contents[0])

    return apply


def _both(target: TriedServer, request: Any) -> None:  # Any: protobuf's
    typed = _request(target, raw=False)
    for entry, other in zip(request.inputs, typed.inputs, strict=True):
        entry.contents.CopyFrom(other.contents)


def _typed_few(target: TriedServer, request: Any) -> None:  # Any: protobuf's
    request.CopyFrom(_request(target, raw=False))
    field = contents_of(target.inputs[0].datatype, target.inputs[0].array)[0]
    del getattr(request.inputs[0].contents, field)[-1]


def _wrong_field(target: TriedServer, request: Any) -> None:  # Any: protobuf's
    request.CopyFrom(_request(target, raw=False))
    contents = request.inputs[0].contents
    size = target.inputs[0].array.size
    other = "int64_contents" if contents.fp32_contents else "fp32_contents"
    contents.Clear()
    getattr(contents, other).extend([1] * size)


WRONG_CALLS: Mapping[str, Change] = {
    "an-input-is-missing": _missing,
    "an-unknown-input": _unknown_input,
    "an-input-twice": _twice,
    "another-datatype": _other_datatype,
    "an-unknown-datatype": _set_first(datatype="FP8"),
    "another-rank": _other_rank,
    "a-negative-size": _set_first(shape=[-1, 1]),
    "too-few-bytes": _raw(lambda raw: raw[:-1]),
    "too-many-bytes": _raw(lambda raw: raw + b"1"),
    "raw-contents-of-too-many": lambda _, request: request.raw_input_contents.append(b"1"),
    "no-contents": lambda _, request: request.ClearField("raw_input_contents"),
    "raw-and-typed-contents": _both,
    "too-few-typed-elements": _typed_few,
    "contents-of-another-type": _wrong_field,
    "an-unknown-output": lambda _, request: request.outputs.add(name="armpy_nope"),
}
"""Changes that make a right call a wrong one, by rule."""


def _refused(target: TriedServer, name: str, request: Any, codes: tuple[str, ...]) -> None:
    assert target.call is not None  # rules of gRPC are not tried without
    try:
        target.call(name, request)
    except CallError as error:
        expected = " or ".join(codes)
        require(error.code in codes, f"expected {expected}: {str(error)[:200]}")
        require(error.args[0].partition(": ")[2], "the refusal has no text")
        return
    raise BrokenRuleError("the call was answered as if it were right")


def _wrong(change: Change, target: TriedServer) -> None:
    request = _request(target, raw=True)
    change(target, request)
    _refused(target, "ModelInfer", request, _CLIENT_CODES)


def _not_found(call: str, target: TriedServer) -> None:
    if call == "ModelInfer":
        request = _request(target, raw=True)
        request.model_name = "armpy_nope"
    else:
        request = _message(f"{call}Request", name="armpy_nope")
    _refused(target, call, request, ("NOT_FOUND",))


GRPC_RULES: tuple[ProtocolRule, ...] = (
    ProtocolRule("grpc/server/live", partial(_states, "ServerLive", "live")),
    ProtocolRule("grpc/server/ready", partial(_states, "ServerReady", "ready")),
    ProtocolRule("grpc/server/metadata", _server_metadata),
    ProtocolRule("grpc/model/ready", partial(_states, "ModelReady", "ready")),
    ProtocolRule("grpc/model/metadata", _model_metadata),
    ProtocolRule("grpc/right/raw", partial(_same_answer, raw=True)),
    ProtocolRule("grpc/right/typed", partial(_same_answer, raw=False)),
    ProtocolRule("grpc/right/id", _id),
    ProtocolRule("grpc/right/one-output", _chosen_output),
    *(
        ProtocolRule(f"grpc/wrong/{name}", partial(_wrong, change))
        for name, change in WRONG_CALLS.items()
    ),
    ProtocolRule("grpc/unknown-model/infer", partial(_not_found, "ModelInfer")),
    ProtocolRule("grpc/unknown-model/metadata", partial(_not_found, "ModelMetadata")),
    ProtocolRule("grpc/still-answers", partial(_same_answer, raw=True)),
)
"""Rules in the order in which they are tried."""
