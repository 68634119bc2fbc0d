from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from armpy.backend import IPrograms, OptionValues, ProgramCheck, ProgramFit, SavedProgram
from armpy.errors import BackendError, InvalidArgumentError
from armpy.execution.compile_targets import check_targets, known_targets, targets_of
from armpy.plugins.proxy.guard import BackendProxy
from tests.support.fake_backends import FakeBackend


class Programs(IPrograms):
    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        return None

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        return ProgramCheck(ProgramFit.FOREIGN)

    def load(self, saved: SavedProgram) -> object:
        return saved


class ForMany(Programs):
    def __init__(self, targets: Any) -> None:  # Any: also what is no target
        self._targets = targets

    @property
    def targets(self) -> Sequence[str]:
        found: Sequence[str] = self._targets
        return found


class Compiling(FakeBackend):
    def __init__(self, backend_id: str, programs: IPrograms | None) -> None:
        super().__init__(backend_id)
        self._programs = programs

    def get_programs(self) -> IPrograms | None:
        return self._programs


def backend(backend_id: str, programs: IPrograms | None) -> BackendProxy:
    return BackendProxy(Compiling(backend_id, programs))


def test_programs_are_for_this_machine_unless_a_backend_says_more() -> None:
    assert targets_of(backend("Plain", Programs())) == ("host",)


def test_a_backend_that_saves_nothing_has_no_targets() -> None:
    assert targets_of(backend("None", None)) == ()


def test_targets_are_those_of_all_backends() -> None:
    backends = [
        backend("None", None),
        backend("Plain", Programs()),
        backend("Acme", ForMany(["acme-2", "host"])),
    ]
    assert known_targets(backends) == {"host": ["Plain", "Acme"], "acme-2": ["Acme"]}
    check_targets(["acme-2", "host"], backends)


def test_without_backends_there_is_this_machine() -> None:
    check_targets(["host"], [])


@pytest.mark.parametrize("targets", ["acme", None, [3], {"acme": 1}])
def test_what_is_no_list_of_names_is_refused(targets: object) -> None:
    with pytest.raises(BackendError, match="Acme / targets"):
        targets_of(backend("Acme", ForMany(targets)))


def test_an_unknown_target_names_the_nearest() -> None:
    with pytest.raises(InvalidArgumentError, match=r"got 'acme-3'. Did you mean 'acme-2'\?"):
        check_targets(["host", "acme-3"], [backend("Acme", ForMany(["acme-2"]))])
