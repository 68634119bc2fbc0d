"""A change of the interface between code and its callers changes the digest."""

from __future__ import annotations

import enum
import subprocess
import sys

import pytest
from armpy_numba_acc.machine import core_arbiter, execution
from armpy_numba_acc.machine.space import Space
from armpy_numba_acc.store import abi

NOW = abi.digest_of_layouts()


def test_it_is_the_same_in_every_process() -> None:
    code = "from armpy_numba_acc.store.abi import abi_digest; print(abi_digest())"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == NOW == abi.abi_digest()


@pytest.mark.parametrize("place", range(len(abi._RECORDS)))
@pytest.mark.parametrize("change", ["renamed", "added", "swapped", "of another type"])
def test_fields_of_records_belong_to_it(
    place: int, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = abi._RECORDS[place]
    fields = [*kind.__annotations__.items()]
    (first, its_type), (second, second_type), *others = fields
    changed = {
        "renamed": [("other", its_type), (second, second_type), *others],
        "added": [*fields, ("one_more", "int")],
        "swapped": [(second, second_type), (first, its_type), *others],
        "of another type": [(first, "complex"), (second, second_type), *others],
    }[change]
    other = type(kind.__name__, (), {"__annotations__": dict(changed)})
    records = [*abi._RECORDS]
    monkeypatch.setattr(abi, "_RECORDS", records)
    records[place] = type(kind.__name__, (), {"__annotations__": dict(fields)})
    same = abi.digest_of_layouts()
    records[place] = other
    assert abi.digest_of_layouts() != same


@pytest.mark.parametrize(
    ("module", "name"),
    [(execution, name) for name in ("SYNC_BYTES", "STAY", "ASLEEP", "CONTROL_LIMIT", "NOT_RUN")]
    + [
        (core_arbiter, "CROWD"),
        (core_arbiter, "ARBITER_BYTES"),
        (abi, "PROTOCOL"),
        (abi, "HEADER_BYTES"),
    ],
)
def test_numbers_belong_to_it(module: object, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, name, getattr(module, name) + 8)
    assert abi.digest_of_layouts() != NOW


def test_numbers_of_spaces_belong_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    others = {space.name: space.value + 1 for space in Space}
    monkeypatch.setattr(abi, "Space", enum.IntEnum("Space", others))
    assert abi.digest_of_layouts() != NOW


def test_what_code_does_not_depend_on_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "one_more_helper", 7, raising=False)
    assert abi.digest_of_layouts() == NOW
