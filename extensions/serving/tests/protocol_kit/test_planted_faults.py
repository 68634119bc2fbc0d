"""The kit passes a right server, and catches a server that breaks any one of its rules."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any

import pytest

from armpy.cli.__main__ import main
from armpy_serving.protocol_kit.http_rules import HTTP_RULES
from armpy_serving.protocol_kit.kit import RuleOutcome, RuleResult, chosen_rules, try_server
from armpy_serving.protocol_kit.target import CallError, HttpAnswer, TriedServer
from armpy_serving.requests import HEADER

from .reference_server import NAME, ReferenceServer, listening, served_strings, served_two

Fault = Callable[[HttpAnswer], HttpAnswer]
HAS_GRPC = all(map(find_spec, ("google", "google.protobuf")))  # the latter needs the former
RULES = [rule.id for rule in chosen_rules(has_grpc=HAS_GRPC)]


@pytest.fixture(scope="module")
def reference() -> Iterator[ReferenceServer]:
    server = ReferenceServer(served_two())
    yield server
    server.close()


@pytest.fixture(scope="module")
def of_strings() -> Iterator[ReferenceServer]:
    server = ReferenceServer(served_strings())
    yield server
    server.close()


def changed(answer: HttpAnswer, **changes: object) -> HttpAnswer:
    """The answer with keys of its JSON changed."""
    length = int(answer.headers.get(HEADER.lower(), len(answer.body)))
    document = json.loads(answer.body[:length]) | changes
    head = json.dumps(document).encode()
    headers = {HEADER.lower(): str(len(head))} if answer.headers else {}
    return HttpAnswer(answer.status, headers, head + answer.body[length:])


def refusing(answer: HttpAnswer) -> HttpAnswer:
    return HttpAnswer(503, {}, b'{"error": "busy"}')


def other_elements(answer: HttpAnswer) -> HttpAnswer:
    """The first element of the first output is another one."""
    if answer.headers:
        return HttpAnswer(answer.status, answer.headers, answer.body[:-1] + b"\x01")
    document = json.loads(answer.body)
    document["outputs"][0]["data"][0] += 1
    return changed(answer, outputs=document["outputs"])


def changed_output(**changes: object) -> Fault:
    """Change keys of the first output."""

    def fault(answer: HttpAnswer) -> HttpAnswer:
        first, *others = json.loads(answer.body)["outputs"]
        return changed(answer, outputs=[first | changes, *others])

    return fault


# Faults of right answers, by rule; the others of HTTP are wrong requests that are answered.
FAULTS: Mapping[str, tuple[Fault, ...]] = {
    "http/server/live": (refusing,),
    "http/server/ready": (refusing,),
    "http/server/metadata": (refusing, lambda a: changed(a, extensions=None)),
    "http/model/ready": (refusing,),
    "http/model/metadata": (
        lambda a: changed(a, name="other"),
        lambda a: changed(a, platform=None),
        lambda a: changed(a, properties=[]),
        lambda a: changed(a, inputs=[{"name": "x", "datatype": "FP32", "shape": {}}]),
        lambda a: changed(a, inputs=[{"name": "x", "datatype": "FLOAT", "shape": [1]}]),
        lambda a: changed(
            a, inputs=[{"name": "x", "datatype": "FP32", "shape": [1], "parameters": [1]}]
        ),
    ),
    "http/right/plain": (
        refusing,
        changed_output(name="armpy_else"),
        changed_output(parameters=[1]),
        changed_output(datatype="INT8", data=[1, 300]),
        lambda a: changed(a, outputs={"double": 1}),
        lambda a: changed(a, outputs=[1]),
    ),
    "http/right/no-nulls": (
        lambda a: changed(a, id=None),
        lambda a: changed(a, model_version=None),
        lambda a: changed(a, versions=None),
    ),
    "http/right/model-name": (lambda a: changed(a, model_name="other"),),
    "http/right/id": (lambda a: changed(a, id="else"), refusing),
    "http/right/nested-data": (refusing, other_elements),
    "http/right/inputs-in-any-order": (refusing, other_elements),
    "http/right/one-output": (changed_output(name="armpy_else"), refusing),
    "http/right/unknown-parameters": (refusing,),
    "http/binary/inputs": (refusing, other_elements),
    "http/binary/outputs": (refusing, other_elements),
    "http/binary/both": (refusing, other_elements),
    "http/still-answers": (refusing, other_elements),
}


def outcome(target: TriedServer, rule: str) -> RuleResult:
    (result,) = [entry for entry in try_server(target, [rule]).results if entry.rule == rule]
    return result


def target_of(reference: ReferenceServer) -> TriedServer:
    """The right server, whose right answers the kit knows already."""
    call = reference.call if HAS_GRPC else None
    target = TriedServer(reference.served.name, reference.send, call)
    assert target.outputs
    assert target.metadata
    assert target.extensions
    return target


@pytest.mark.parametrize(
    ("server", "needed"),
    [
        ("reference", {"strings"}),
        ("of_strings", {"floats", "integers", "numbers"}),
    ],
)
def test_a_right_server_keeps_every_rule(
    request: pytest.FixtureRequest, server: str, needed: set[str]
) -> None:
    result = try_server(target_of(request.getfixturevalue(server)))
    problems = [entry for entry in result.results if entry.outcome is RuleOutcome.BROKEN]
    assert problems == []
    assert result.is_passed
    reasons = {e.text for e in result.results if e.outcome is RuleOutcome.NOT_APPLICABLE}
    reasons.discard("the model has one input")
    assert reasons == {f"the model has no input of {kind}" for kind in needed}


@pytest.mark.parametrize("rule", [rule.id for rule in HTTP_RULES if rule.id in FAULTS])
def test_a_wrong_answer_to_a_right_request_is_caught(reference: ReferenceServer, rule: str) -> None:
    for fault in FAULTS[rule]:
        target = target_of(reference)
        if rule == "http/model/metadata":
            del target.metadata
        send = target.send
        target.send = lambda *request, send=send, fault=fault: fault(send(*request))
        assert outcome(target, rule).outcome is RuleOutcome.BROKEN


@pytest.mark.parametrize("kind", ["inputs", "outputs"])
def test_a_server_that_names_no_inputs_or_outputs_breaks_rules(
    reference: ReferenceServer, kind: str
) -> None:
    def send(*request: Any) -> HttpAnswer:
        answer = reference.send(*request)
        is_plain = not answer.headers and kind in json.loads(answer.body)
        return changed(answer, **{kind: []}) if is_plain else answer

    broken = {
        entry.rule: entry.text
        for entry in try_server(TriedServer(NAME, send)).results
        if entry.outcome is RuleOutcome.BROKEN
    }
    assert broken["http/model/metadata"] == f"no {kind}"
    assert f"no {kind}" in broken["http/right/one-output"]


WRONG = [rule.id for rule in HTTP_RULES if rule.id not in FAULTS]
OF_STRINGS = "http/wrong/a-number-for-a-string"  # for models that have some


@pytest.mark.parametrize("rule", WRONG)
@pytest.mark.parametrize("fault", ["answered", "500", "text", "detail"])
def test_a_wrong_request_that_is_not_refused_rightly_is_caught(
    reference: ReferenceServer, of_strings: ReferenceServer, rule: str, fault: str
) -> None:
    target = target_of(of_strings if rule == OF_STRINGS else reference)
    send = target.send
    right = target.post(json.dumps(target.document()).encode())
    answers = {
        "answered": right,
        "500": HttpAnswer(500, {}, b'{"error": "oh"}'),
        "text": HttpAnswer(400, {}, b"Bad request"),
        "detail": HttpAnswer(400, {}, b'{"detail": "wrong"}'),
    }

    def faulty(*request: Any) -> HttpAnswer:
        answer = send(*request)
        return answer if answer.status == 200 else answers[fault]

    target.send = faulty
    result = outcome(target, rule)
    assert result.outcome is RuleOutcome.BROKEN
    assert result.text


def test_rules_of_bytes_are_for_servers_that_name_the_extension(
    reference: ReferenceServer,
) -> None:
    target = target_of(reference)
    target.extensions = []
    result = try_server(target, ["binary"])
    assert {entry.outcome for entry in result.results} == {RuleOutcome.NOT_APPLICABLE}
    assert not result.is_passed


@pytest.mark.skipif(not HAS_GRPC, reason="protobuf is not installed")
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.startswith("grpc/")])
def test_a_faulty_call_is_caught(reference: ReferenceServer, rule: str) -> None:
    target = target_of(reference)
    call = target.call
    assert call is not None

    def answering_wrongly(name: str, request: Any) -> Any:
        """Every right answer is of another model, or false; every refusal is internal."""
        try:
            answer = call(name, request)
        except CallError as error:
            raise CallError("INTERNAL", str(error)) from error
        answer = type(answer)()
        if name == "ModelInfer":
            answer.model_name = NAME
        return answer

    def refusing_all(name: str, request: Any) -> Any:
        raise CallError("UNKNOWN", "no")

    def accepting_all(name: str, request: Any) -> Any:
        try:
            return call(name, request)
        except CallError:
            return object()

    is_wrong = "/wrong/" in rule or "/unknown-model/" in rule
    for fault in (answering_wrongly, refusing_all, *((accepting_all,) if is_wrong else ())):
        target.call = fault
        assert outcome(target, rule).outcome is RuleOutcome.BROKEN


def test_a_server_behind_a_socket_is_tried_by_the_command(
    reference: ReferenceServer, capsys: pytest.CaptureFixture[str]
) -> None:
    def faulty(verb: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> HttpAnswer:
        if path == "/v2/health/live":
            return HttpAnswer(500, {}, b"no")
        return reference.send(verb, path, body, headers)

    for send, code in ((reference.send, 0), (faulty, 1)):
        server = listening(send)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            assert main(["check-server", url, "--model", NAME, "--json"]) == code
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
        document = json.loads(capsys.readouterr().out)
        assert document["is_passed"] is (code == 0)
        broken = [entry for entry in document["results"] if entry["outcome"] == "broken"]
        assert [entry["rule"] for entry in broken] == ["http/server/live"] * code
