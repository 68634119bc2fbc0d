"""Judges one case: whether the backend runs what it accepts, and whether its answer is right."""

from __future__ import annotations

from contextlib import suppress

from armpy.backend import Support
from armpy.compiler import Placement, specialize
from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError, BackendCapabilityError
from armpy.graph import Graph, Layer
from armpy.ops.operation import Array
from armpy_conformance.backend_under_test import BackendUnderTest, refusal, specialized
from armpy_conformance.case import LAYER, Case
from armpy_conformance.comparison.exact_layers import is_move
from armpy_conformance.differential_run import (
    DifferentialRun,
    FailureError,
    as_read,
    other_feeds,
    run_trial,
)
from armpy_conformance.executed_layers import kind_of, kinds_run, layers_run
from armpy_conformance.neighbours import NEIGHBOURS, companies
from armpy_conformance.raised import described
from armpy_conformance.result import CaseResult, Outcome

ANSWERED_BY_CORE = "the core gave the answer without asking a backend"
TAKEN_OUT = "the backend took the layer out, as it does nothing"


class _UnsupportedError(Exception):
    """A case that the backend does not take, and its reason."""


class _GivenBackError(Exception):
    """A layer that the backend said yes to and gave back, and its reason."""


@dataclass(frozen=True, slots=True)
class CaseVerdict:
    """Verdict on a case, and the network in which its layer ran."""

    result: CaseResult
    case: Case  # with the neighbours that the backend asked for by giving the layer back alone


def judge(subject: BackendUnderTest, case: Case) -> CaseResult:
    """Judge one case.

    Returns
    -------
    CaseResult
        PASSED if the layer ran on the backend, alone or with neighbours, and the answer is
        right; ELSEWHERE if the answer is not the backend's; UNSUPPORTED with the backend's own
        reason; FAILED if the backend said that it supports the layer and does not prepare or
        run it, if its answer is wrong, or if it raises when it is asked or something that the core
        does not contain.
    """
    return examine(subject, case).result


def examine(subject: BackendUnderTest, case: Case) -> CaseVerdict:
    """`judge`, with the case as it ran."""
    claimed: tuple[str, ...] = ()
    ran: tuple[str, ...] = ()
    layers: tuple[Layer, ...] = ()
    text = ""
    try:
        layers = _supported_layers(subject, case)
        claimed = tuple(map(kind_of, layers))
        case = case.defined()
        placement, case = _run(subject, case, case.graph(), is_asked=bool(layers))
        ran = kinds_run(layers, placement, subject.backend_id)
        outcome = Outcome.PASSED if ran else Outcome.ELSEWHERE
        if case.neighbours:
            text = f"with {case.neighbours}, as it was given back alone"
        if not ran:
            claimed, text = (), TAKEN_OUT if layers else ANSWERED_BY_CORE
    except _UnsupportedError as no:
        outcome, text = Outcome.UNSUPPORTED, str(no)
    except _GivenBackError as back:
        outcome, text = Outcome.ELSEWHERE, str(back)
    except FailureError as failure:
        outcome, text = Outcome.FAILED, _located(subject, case, failure)
        ran = kinds_run(layers, failure.placement, subject.backend_id)
    except Exception as error:  # noqa: BLE001 - the backend's code may raise anything
        outcome, text = Outcome.FAILED, _located(subject, case, described(error))
    name = case.operation.name
    return CaseVerdict(CaseResult(case.id, name, case.data_type, outcome, text, claimed, ran), case)


def _located(subject: BackendUnderTest, case: object, problem: object) -> str:
    """A message that names backend, operation, shapes and types."""
    return f"{subject.backend_id} / {case}: {problem}"


def _supported_layers(subject: BackendUnderTest, case: Case) -> tuple[Layer, ...]:
    """The layers that the backend is asked about, if it takes them all."""
    if no := subject.plain_refusal(case):
        raise _UnsupportedError(no)
    whole = specialized(case)
    for layer in whole.layers:
        answer = subject.raw_support(layer)
        if not isinstance(answer, Support):
            raise FailureError(f"is_layer_supported answered {answer!r}, not a Support")
    no = refusal(subject.supports(whole).values())
    if no:
        raise _UnsupportedError(no)
    return whole.layers


def _run(
    subject: BackendUnderTest, case: Case, graph: Graph, *, is_asked: bool
) -> tuple[Placement | None, Case]:
    """Try a case alone, then with neighbours; where its layers ran, and the case as it ran."""
    try:
        return run_trial(subject.runtime, trial_of(subject, case, graph)), case
    except BackendCapabilityError as error:
        reason = subject.reason_to_give_back(graph) if is_asked else None
        if reason is None:
            raise FailureError(f"said supported, but failed to prepare: {error}") from error
    except ArmpyError as error:
        raise FailureError(f"said supported, but failed to prepare: {error}") from error
    for together in sorted(companies(case), key=lambda c: (c.front, c.after) != subject.company):
        graph = together.graph()
        supports = subject.supports(specialize(graph))
        if not all(supports.values()) or all(layer.name != LAYER for layer in supports):
            continue
        try:
            placement = run_trial(subject.runtime, trial_of(subject, together, graph))
        except BackendCapabilityError:
            continue  # given back again
        except FailureError as failure:
            text = f"with {together.neighbours}: {failure}"
            raise FailureError(text, failure.placement) from failure
        if LAYER in layers_run(placement, subject.backend_id):
            subject.company = (together.front, together.after)
            return placement, together
    text = (
        "get_layer_support accepts the layer, but the backend took it in no network: neither alone "
        f"nor beside {NEIGHBOURS}. Its reason: {reason}"
    )
    if subject.patterns:
        raise _GivenBackError(f"given back: {reason}")
    raise FailureError(f"{text}. Refuse it, or declare the pattern that it is taken in")


def trial_of(subject: BackendUnderTest, case: Case, graph: Graph) -> DifferentialRun:
    """Return the trial of a case whose network is built, with the right answers."""
    first = None
    if case.expected is not None:
        first = dict(zip(graph.output_names, case.expected, strict=True))
    # A case with neighbours is made for one trial.
    whole = None if case.neighbours else specialized(case)
    numerics = subject.backend.device.numerics
    feeds = as_read(numerics, case.feeds()) if first is None else case.feeds()
    both, expected = expected_of(subject, graph, feeds, first, case.feeds_again(), whole)
    labels = [_label(case, number) for number in range(len(graph.outputs))]
    num_layers = 1 + (case.front is not None) + (case.after is not None)
    is_exact = num_layers == 1 and (case.is_exact or is_move(graph.layers[0]))
    return DifferentialRun(graph, both, expected, labels, is_exact, num_layers, numerics)


def _label(case: Case, number: int) -> str:
    """Return the name of an output in messages."""
    operands = case.operation.outputs
    name = operands[min(number, len(operands) - 1)].name
    return f"{name} (output {number})" if len(case.outputs) > 1 else name


Feeds = dict[str, Array]


def expected_of(
    subject: BackendUnderTest,
    graph: Graph,
    feeds: Feeds,
    first: Feeds | None = None,
    second: Feeds | None = None,
    whole: Graph | None = None,
) -> tuple[tuple[Feeds, Feeds], tuple[Feeds, Feeds]]:
    """Inputs of two executions, and their outputs.

    Parameters
    ----------
    feeds : dict of str to ndarray
        Inputs of the first one.
    first : dict of str to ndarray, optional
        Its outputs if they are known; CpuRef says all others.
    second : dict of str to ndarray, optional
        Inputs of the second one; those of the first in another order if left out.
    whole : Graph, optional
        The specialised graph, if it is there already.

    Notes
    -----
    Where CpuRef refuses other inputs, or there are none, both executions have the same.
    """
    second = second or other_feeds(graph, feeds)
    if any(second[name] is not array for name, array in feeds.items()):
        with suppress(ArmpyError):  # the other inputs mean nothing to the operation
            wanted = [second] if first is not None else [feeds, second]
            *answers, other = subject.expected_each(graph, wanted, whole)
            return (feeds, second), (first if first is not None else answers[0], other)
    if first is None:
        first = subject.expected(graph, feeds, whole)
    return (feeds, feeds), (first, first)
