"""The surface of `armpy.backend` changes with its version only."""

from __future__ import annotations

import runpy
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.version import Version

from armpy.backend import BACKEND_API_VERSION, IBackendInternal

ROOT = Path(__file__).parents[2]
SURFACE = runpy.run_path(str(ROOT / "lab" / "contract_surface.py"))
RECORDS = SURFACE["records"]()


def test_the_surface_is_the_one_recorded_for_its_version() -> None:
    problem = SURFACE["what_to_do"]()
    assert not problem, problem


def test_the_latest_record_is_that_of_the_present_version() -> None:
    assert [*RECORDS] == sorted(RECORDS, key=Version)
    assert [*RECORDS][-1] == BACKEND_API_VERSION


def test_a_minor_version_breaks_nothing() -> None:
    for old, new in pairwise(RECORDS):
        if Version(old).major == Version(new).major:
            changes = SURFACE["differences"](RECORDS[old], RECORDS[new])
            assert not SURFACE["breaking"](changes), f"{new} breaks what {old} promised"


OLD = {"A": {"": "class (object)", "gone": "method (self)", "kept": "method (self)"}}


@pytest.mark.parametrize(
    ("new", "lines", "is_breaking"),
    [
        (OLD, [], False),
        ({**OLD, "B": {"": "constant 1"}}, ["+ B: constant 1"], False),
        ({"A": {**OLD["A"], "new": "method (self)"}}, ["+ A.new: method (self)"], False),
        (
            {"A": {**OLD["A"], "new": "abstract method (self)"}},
            ["+ A.new: abstract method (self)"],
            True,
        ),
        (
            {**OLD, "B": {"": "class (ABC)", "new": "abstract method (self)"}},
            ["+ B: class (ABC)", "+ B.new: abstract method (self)"],
            False,
        ),
        (
            {"A": {"": "class (object)", "kept": "method (self)"}},
            ["- A.gone: method (self)"],
            True,
        ),
        (
            {"A": {**OLD["A"], "kept": "method (self, x)"}},
            ["~ A.kept: method (self) -> method (self, x)"],
            True,
        ),
    ],
)
def test_differences_are_reported_and_breaking_ones_marked(
    new: dict[str, dict[str, str]], lines: list[str], is_breaking: bool
) -> None:
    assert SURFACE["differences"](OLD, new) == lines
    assert bool(SURFACE["breaking"](lines)) is is_breaking


def test_the_surface_holds_every_member_of_the_interface() -> None:
    members = SURFACE["surface"]()["IBackendInternal"]
    assert members["create_workload_factory"].startswith("abstract method (self, network")
    assert members["get_id"] == "abstract method (self) -> 'BackendId'"
    assert members["version"] == "property (self) -> 'str'"
    public = {name for name in vars(IBackendInternal) if not name.startswith("_")}
    assert set(members) == public | {""}


def test_a_record_has_what_a_version_changes() -> None:
    new = {"A": {"": "class (object)", "new": "method (self)"}, "B": {"": "constant 1"}}
    assert SURFACE["changes_of"](OLD, new) == {
        "A": {"gone": None, "kept": None, "new": "method (self)"},
        "B": {"": "constant 1"},
    }
    assert SURFACE["changes_of"](new, new) == {}
    assert SURFACE["changes_of"](new, {"A": new["A"]}) == {"B": {"": None}}
