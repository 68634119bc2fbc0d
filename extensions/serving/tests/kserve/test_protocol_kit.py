"""The kit of the protocol finds nothing on KServe's server with armpy's routes."""

from __future__ import annotations

import pytest

from armpy_serving import protocol_kit
from armpy_serving.protocol_kit.kit import RuleOutcome, try_server
from armpy_serving.protocol_kit.target import TriedServer, http_sender

from .inference_calls import grpc_modules
from .kserve_server import KServeProcess

pytest.importorskip("kserve", reason="kserve is not installed")


@pytest.mark.parametrize("model", ["mixed", "halves"])
def test_every_rule_of_the_protocol_is_kept(server: KServeProcess, model: str) -> None:
    call = protocol_kit.grpc_caller(server.grpc_address)
    result = try_server(TriedServer(model, http_sender(server.url), call))
    assert [entry for entry in result.results if entry.outcome is RuleOutcome.BROKEN] == []
    assert result.counts[RuleOutcome.KEPT] > 60


def test_messages_are_those_of_the_published_description() -> None:
    from armpy_serving.protocol_kit.messages import message_classes

    published = grpc_modules().pb
    names = {"TensorMetadata": "ModelMetadataResponse"} | {
        name: parent
        for parent, names in {
            "ModelInferRequest": ("InferInputTensor", "InferRequestedOutputTensor"),
            "ModelInferResponse": ("InferOutputTensor",),
        }.items()
        for name in names
    }
    for name, kind in message_classes().items():
        parent = names.get(name)
        other = getattr(published if parent is None else getattr(published, parent), name)
        for field in kind.DESCRIPTOR.fields:
            same = other.DESCRIPTOR.fields_by_name[field.name]
            assert (field.number, field.type, field.label) == (same.number, same.type, same.label)
