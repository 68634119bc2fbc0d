"""Runs of the kit, and their results."""

from __future__ import annotations

import enum
import time
from collections import Counter
from collections.abc import Sequence

from armpy.core.dataclass import dataclass
from armpy_serving import protocol_kit
from armpy_serving.protocol_kit.answers import BrokenRuleError
from armpy_serving.protocol_kit.http_rules import HTTP_RULES
from armpy_serving.protocol_kit.rules import InapplicableRuleError, ProtocolRule
from armpy_serving.protocol_kit.target import TriedServer


class RuleOutcome(enum.Enum):
    """Outcome of one rule."""

    KEPT = "kept"
    BROKEN = "broken"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule's outcome."""

    rule: str  # its id
    outcome: RuleOutcome
    text: str = ""
    """Server's answer, or the reason why the rule is not applicable."""


@dataclass(frozen=True, slots=True)
class ProtocolResult:
    """All outcomes of a run."""

    results: tuple[RuleResult, ...]  # in the order of the run
    duration_s: float

    @property
    def is_passed(self) -> bool:
        """True if rules were kept, and none was broken."""
        return bool(self.counts[RuleOutcome.KEPT]) and not self.counts[RuleOutcome.BROKEN]

    @property
    def counts(self) -> Counter[RuleOutcome]:
        """Number of rules by outcome."""
        return Counter(result.outcome for result in self.results)

    def document(self) -> dict[str, object]:
        """Everything as plain dictionaries and lists."""
        return {
            "is_passed": self.is_passed,
            "duration_s": round(self.duration_s, 3),
            "counts": {outcome.value: self.counts[outcome] for outcome in RuleOutcome},
            "results": [
                {"rule": entry.rule, "outcome": entry.outcome.value, "text": entry.text}
                for entry in self.results
            ],
        }


def chosen_rules(filters: Sequence[str] = (), *, has_grpc: bool) -> list[ProtocolRule]:
    """Rules whose ids have one of some texts; all without texts."""
    rules = [*HTTP_RULES]
    if has_grpc:
        rules += protocol_kit.GRPC_RULES
    return [rule for rule in rules if not filters or any(text in rule.id for text in filters)]


def try_server(target: TriedServer, filters: Sequence[str] = ()) -> ProtocolResult:
    """Try the rules on a server."""
    begin_s = time.perf_counter()
    rules = chosen_rules(filters, has_grpc=target.call is not None)
    results = tuple([_tried(rule, target) for rule in rules])
    return ProtocolResult(results, time.perf_counter() - begin_s)


def _tried(rule: ProtocolRule, target: TriedServer) -> RuleResult:
    """Try one rule."""
    try:
        rule.trial(target)
    except InapplicableRuleError as error:
        return RuleResult(rule.id, RuleOutcome.NOT_APPLICABLE, str(error))
    except BrokenRuleError as error:
        return RuleResult(rule.id, RuleOutcome.BROKEN, str(error))
    # Of an answer in another form than expected, or of elements that its datatype does not hold.
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        return RuleResult(rule.id, RuleOutcome.BROKEN, f"{type(error).__name__}: {error}")
    return RuleResult(rule.id, RuleOutcome.KEPT)
