# SPDX-License-Identifier: Apache-2.0
"""Lines of pages that install extensions: one form for each, and one name of each option."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.support.pages import ROOT, pages

FORMS = {
    # Plain where a page needs the modules alone; with what the programs that it shows need.
    "compat": {"", "cli,onnx"},
    # Plain as what tools depend on, whose extra has the rest.
    "conformance": {"", "cli,pytest"},
    "mediapipe": {""},
    "nnapi": {"", "conformance"},
    "onnx": {""},
    # A server or cluster each.
    "serving": {"", "grpc", "kserve", "mlserver", "ray", "spark"},
    "tools": {"cli"},
    "torch": {""},
}
"""Extras that pages install each extension with."""

_PLACE = re.compile(
    r"(?<=[\s`])(['\"]?)\./extensions/(\w+)(?:\[([\w,]+)\])?(['\"]?)(?=[\s`]|$)", re.M
)


def wrong_places(text: str) -> list[str]:
    """Extensions that a text installs in another form, or with quotes that are not needed."""
    return [
        found[0].strip()
        for found in _PLACE.finditer(text)
        if (found[3] or "") not in FORMS[found[2]]
        or {found[1], found[4]} != {"'" if found[3] else ""}
    ]


@pytest.mark.parametrize("name", [page.relative_to(ROOT).as_posix() for page in pages()])
def test_extensions_are_installed_in_one_form(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert wrong_places(text) == []
    assert not re.search(r"--shapes\b", text)


def test_extras_of_the_forms_exist() -> None:
    for name, forms in FORMS.items():
        path = ROOT / "extensions" / name / "pyproject.toml"
        extras = tomllib.loads(path.read_text("utf-8"))["project"]["optional-dependencies"]
        assert {extra for form in forms for extra in form.split(",") if extra} <= extras.keys()


def test_another_form_is_noticed() -> None:
    assert wrong_places("pip install ./extensions/tools ./extensions/onnx") == [
        "./extensions/tools"
    ]
    assert wrong_places('`./extensions/onnx "./extensions/compat[cli,onnx]"`') == [
        '"./extensions/compat[cli,onnx]"'
    ]
    assert wrong_places("pip install './extensions/tools[cli]'\n") == []
