from __future__ import annotations

import ast
from pathlib import Path

import pytest

from armpy import nnapi
from armpy.nnapi import _HOMES


def test_every_public_name_has_a_home_and_type_checkers_see_it() -> None:
    tree = ast.parse(Path(nnapi.__file__ or "").read_text("utf-8"))
    (guarded,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == set(nnapi.__all__) == set(_HOMES)


@pytest.mark.parametrize("name", sorted(_HOMES))
def test_a_public_name_can_be_used(name: str) -> None:
    assert getattr(nnapi, name) is not None
    assert name in dir(nnapi)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"'armpy\.nnapi' has no attribute 'Modle'"):
        nnapi.Modle  # noqa: B018
