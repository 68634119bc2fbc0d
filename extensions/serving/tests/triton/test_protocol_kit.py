"""Models of armpy break no rule of the protocol but those that Triton itself breaks."""

from __future__ import annotations

from pathlib import Path

from armpy_serving import protocol_kit
from armpy_serving.protocol_kit.kit import RuleOutcome, try_server
from armpy_serving.protocol_kit.target import TriedServer, http_sender
from armpy_serving.triton import TritonExport, TritonOptions, export_model

from ..protocol_kit.reference_server import NAME, served_two
from .conftest import Start

OF_TRITON = {
    # Bodies that it cannot read are answered with 500.
    *(f"http/wrong/no-{key}" for key in ("inputs", "name", "shape", "datatype", "utf-8")),
    *("http/wrong/inputs-is-no-list", "http/wrong/parameters-is-no-object"),
    *("http/wrong/id-is-no-string", "http/wrong/a-negative-size", "http/wrong/a-fractional-size"),
    *("http/wrong/too-few-elements", "http/wrong/too-many-elements", "http/wrong/null-element"),
    *("http/wrong/object-element", "http/wrong/text-for-a-number", "http/wrong/truncated-json"),
    *("http/wrong/a-fraction-for-an-integer", "http/wrong/a-list", "http/wrong/deep-nesting"),
    "http/wrong/trailing-text",
    # These are answered as if they were right.
    *("http/wrong/an-integer-that-is-too-large", "http/wrong/nan"),
    "grpc/wrong/raw-contents-of-too-many",
}
"""Rules that Triton 24.10 breaks before a model is called."""


def test_every_rule_that_triton_leaves_to_its_models_is_kept(start: Start, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    with served_two().model as model:
        export_model(model, repository, TritonExport(TritonOptions(NAME)))
    server = start(repository)
    call = protocol_kit.grpc_caller(server.grpc)
    result = try_server(TriedServer(NAME, http_sender(f"http://{server.http}"), call))
    broken = {e.rule: e.text for e in result.results if e.outcome is RuleOutcome.BROKEN}
    assert {rule: text for rule, text in broken.items() if rule not in OF_TRITON} == {}
    assert broken.keys() == OF_TRITON, "Triton keeps more rules than the page says"
    assert result.counts[RuleOutcome.KEPT] > 60
