"""Chains as armpy loads them when the plugin is installed."""

from __future__ import annotations

import numpy as np
import pytest

import armpy
from armpy.errors import ParserError


def test_steps_are_taken_in_order() -> None:
    with armpy.load(b"chain 1\ninput 3\nadd 1\nmultiply 2\nrelu\n") as model:
        result = model.run({"x": np.array([-3, 0, 1], np.float32)})
    np.testing.assert_array_equal(result["y"], [0, 2, 4])


def test_the_option_repeats_the_steps() -> None:
    options = {"repeat": 3}
    with armpy.load(b"chain 1\ninput 1\nadd 2\n", front_end_options=options) as model:
        assert model.run({"x": np.zeros(1, np.float32)})["y"] == 6


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"chain 1\n", "line 2: there is no input"),
        (b"chain 1\ninput 3\nadd one\n", "line 3: this is not a number. Got one"),
        (b"chain 1\ninput 3\n\nturn\n", "line 3: this is no step"),
        (b"chain 1\ninput \xff\n", "this is not text"),
    ],
)
def test_a_damaged_chain_names_the_line(text: bytes, reason: str) -> None:
    with pytest.raises(ParserError, match=reason):
        armpy.load(text)
