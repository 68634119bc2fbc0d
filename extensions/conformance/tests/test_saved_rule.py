"""The kit's verdict on backends that write programs into compiled models."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from armpy.backend import (
    IPrograms,
    OptionValues,
    ProgramCheck,
    ProgramFit,
    SavedProgram,
)
from armpy.graph import SubgraphView
from armpy_conformance import Outcome
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.contract import CONTRACT_CASES, judge_contract
from armpy_testing.backends.fake_backends import CompilingBackend
from armpy_testing.backends.lying_backends import OPERATIONS

from .kit_runs import options_for

(RULE,) = (case for case in CONTRACT_CASES if case.id.startswith("contract/compiled/saved"))


class Honest(IPrograms):
    """Writes a number; programs stay in the process, as files of tests do not outlive it."""

    def __init__(self) -> None:
        self.programs: list[object] = []

    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        self.programs.append(program)
        about = {"number": len(self.programs) - 1, "maker": "Honest"}
        return SavedProgram(about, {"nothing": np.zeros(3, np.uint8)})

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        if about.get("maker") == "Honest":
            return ProgramCheck(ProgramFit.ACCEPTED)
        return ProgramCheck(ProgramFit.FOREIGN, "another maker's program")

    def load(self, saved: SavedProgram) -> object:
        return self.programs[int(str(saved.about["number"]))]


class AcceptsAll(Honest):
    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        return ProgramCheck(ProgramFit.ACCEPTED)


class AcceptsNothing(Honest):
    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        return ProgramCheck(ProgramFit.REBUILD, "never good enough")


class SaysNoReason(Honest):
    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        return super().check(about, options)._replace(reason="")


class Trips(Honest):
    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        if about["maker"] == "Honest":
            return ProgramCheck(ProgramFit.ACCEPTED)
        return ProgramCheck(ProgramFit.FOREIGN, "another maker's program")


class MixesUp(Honest):
    """Gives the first program of the same shapes, whatever its constants are."""

    def load(self, saved: SavedProgram) -> object:
        wanted = super().load(saved)
        assert isinstance(wanted, SubgraphView)
        shapes = [value.info for value in (*wanted.inputs, *wanted.outputs)]
        for program in self.programs:
            assert isinstance(program, SubgraphView)
            if [value.info for value in (*program.inputs, *program.outputs)] == shapes:
                return program
        return wanted


class Compiler(CompilingBackend):
    def __init__(self, programs: IPrograms | None) -> None:
        super().__init__("Liar", OPERATIONS)
        self._programs = programs

    def get_programs(self) -> IPrograms | None:
        return self._programs


def judged(programs: IPrograms | None) -> tuple[Outcome, str]:
    """Outcome of the rule, and the reason."""
    backend = Compiler(programs)
    result = judge_contract(BackendUnderTest(backend.get_id(), options_for(backend)), RULE)
    return result.outcome, result.text


def test_programs_that_come_back_pass() -> None:
    assert judged(Honest()) == (Outcome.PASSED, "")


def test_a_backend_without_any_has_nothing_to_try() -> None:
    outcome, text = judged(None)
    assert outcome is not Outcome.FAILED
    assert "no programs" in text


@pytest.mark.parametrize(
    ("liar", "text"),
    [
        (AcceptsAll, "check accepts a program that is described by"),
        (AcceptsNothing, "never good enough"),
        (SaysNoReason, "check gives no reason for refusing"),
        (Trips, "KeyError"),
        (MixesUp, "when it comes from a compiled model, the output"),
    ],
)
def test_liars_are_caught(liar: type[Honest], text: str) -> None:
    outcome, said = judged(liar())
    assert outcome in (Outcome.FAILED, Outcome.CRASHED)
    assert text in said
