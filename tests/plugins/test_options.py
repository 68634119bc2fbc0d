from __future__ import annotations

from pathlib import Path

import pytest

from armpy.errors import InvalidArgumentError
from armpy.plugins import PluginOptions


class BytesPath:
    def __fspath__(self) -> bytes:
        return b"/bytes"


@pytest.mark.parametrize(
    ("given", "directories"),
    [
        ((), ()),
        ("", ()),
        ("/a", ("/a",)),
        ("/a:/b", ("/a:/b",)),
        (Path("/a"), ("/a",)),
        (["/a", Path("/b")], ("/a", "/b")),
        ([""], ("",)),
    ],
)
def test_one_path_or_several_may_be_given(given: object, directories: tuple[str, ...]) -> None:
    options = PluginOptions(given)  # type: ignore[arg-type]  # of every allowed kind
    assert options.directories == directories


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("dynamic_backends_path", 5, "a path or a sequence of paths"),
        ("dynamic_backends_path", b"/a", "a path or a sequence of paths"),
        ("dynamic_backends_path", [5], "a path or a sequence of paths"),
        ("dynamic_backends_path", BytesPath(), "a path or a sequence of paths"),
        ("trust_file", 5, "a path"),
        ("trust_insecure_paths", "yes", "true or false"),
        ("probe", 1, "true or false"),
        ("probe_timeout_s", 0, "more than 0 seconds"),
        ("probe_timeout_s", float("nan"), "more than 0 seconds"),
        ("probe_timeout_s", float("inf"), "more than 0 seconds"),
        ("probe_timeout_s", "10", "a number of seconds"),
        ("probe_timeout_s", True, "a number of seconds"),
    ],
)
def test_options_of_the_wrong_type_or_range_are_an_error(
    option: str, value: object, expected: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^{option}: .* Expected {expected}"):
        PluginOptions(**{option: value})  # type: ignore[arg-type]  # wrong on purpose
