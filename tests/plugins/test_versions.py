from __future__ import annotations

import pytest

from armpy.plugins.checks import version_text, why_incompatible


@pytest.mark.parametrize(
    ("version", "core", "fits"),
    [
        ("0.1", "0.1", True),
        ("0.0", "0.1", True),
        ("0.2", "0.1", False),
        ("1.0", "0.1", False),
        ("0.9", "1.2", False),
        ("1.0", "1.2", True),
        ("1.2", "1.2", True),
        ("1.3", "1.2", False),
        ("1.10", "1.9", False),
        ("2.0", "1.2", False),
        ("2.4", "2.4", True),
        ("2.3", "2.4", True),
        ("2.1", "2.4", True),
        ("2.5", "2.4", False),
        ("1.4", "2.4", False),
        ("3.4", "2.4", False),
        ("2.0", "1.0", False),
        ("2.0", "3.0", False),
    ],
)
def test_the_major_has_to_be_equal_and_the_minor_at_most_the_cores(
    version: str, core: str, fits: bool
) -> None:
    reason = why_incompatible(version, core)
    expected = "" if fits else f"it is made for API version {version}, which does not fit {core}"
    assert reason == expected


@pytest.mark.parametrize(
    "version",
    [
        *("", "new", "1.0.", "1,0", "1", "v1.0", " 1.0 ", "1.0\n", "1.0.0", "0.1.7", "1.0rc1"),
        *("1.0+local", "1!1.0", "1.0.post1", "01.0", "1.00", "-1.0", "+1.0", "1_0.0", "\u0661.0"),
        *(None, 0.1, (1,), (1, 0, 0), ("1", "0"), (True, 0), (-1, 0)),
    ],
)
def test_something_that_is_no_version_does_not_fit(version: object) -> None:
    reason = why_incompatible(version)
    assert reason == f"its API version {version!r} is not of the form major.minor"


@pytest.mark.parametrize("version", [(1, 2), [1, 2], "1.2"])
def test_a_version_may_be_text_or_a_pair(version: object) -> None:
    assert version_text(version) == "1.2"
    assert why_incompatible(version, "1.2") == ""
    assert why_incompatible(version, "1.1") == (
        "it is made for API version 1.2, which does not fit 1.1"
    )
