"""Suggestions of names that extensions and backends outside armpy's own distribution bring."""

from __future__ import annotations

import os

import pytest

from armpy.errors import BackendUnavailableError
from armpy.plugins import BackendRegistry
from armpy.plugins.extension_tables import COMMANDS
from armpy.plugins.extensions import install_line, suggest_backend, suggest_name

OWN = ("CpuRef", "NumbaAcc")


@pytest.mark.parametrize(
    ("name", "distribution", "question"),
    [
        ("OpenVino", "armpy-openvino", ""),
        ("openvino", "armpy-openvino", "Did you mean 'OpenVino'? "),
        ("OrtCudaa", "armpy-onnxruntime", "Did you mean 'OrtCuda'? "),
        ("LiteRT", "armpy-litert", "Did you mean 'LiteRt'? "),
    ],
)
def test_a_backend_of_a_missing_distribution_is_installed_by_the_fix(
    name: str, distribution: str, question: str
) -> None:
    text = f"It comes with {distribution}, which is missing. Run: {install_line(distribution)}"
    assert suggest_backend(name, OWN) == question + text
    folder = distribution.removeprefix("armpy-")
    assert os.path.join("backends", folder) in text or f"pip install {distribution}" in text


def test_an_installed_backend_is_only_suggested() -> None:
    assert suggest_backend("NumbaAc", OWN) == "Did you mean 'NumbaAcc'?"
    assert suggest_backend("OrtCudaa", ["OrtCuda"]) == "Did you mean 'OrtCuda'?"


def test_an_installed_backend_goes_before_one_as_near_that_is_not() -> None:
    assert suggest_backend("Cpu", ["CpuRef"]) == "Did you mean 'CpuRef'?"
    assert suggest_backend("OrtCud", ["OrtCpu"]).startswith("Did you mean 'OrtCuda'? It comes with")


def test_a_backend_of_others_is_not_taken_for_one_of_this_project() -> None:
    fix = suggest_backend("AcmeNpu", OWN)
    assert fix == "Choose an expected one, or install the package that brings 'AcmeNpu'"


def test_errors_about_unknown_backends_have_the_line() -> None:
    known = BackendRegistry.discover().backend_ids
    if "OpenVino" in known:
        pytest.skip("armpy-openvino is installed")
    with pytest.raises(BackendUnavailableError, match=r"armpy-openvino.* Run: pip install "):
        BackendRegistry.discover().get("openvino")


def test_extras_are_installed_with_their_distribution() -> None:
    line = install_line("armpy-serving")
    assert install_line("armpy-serving[kserve]").replace("[kserve]", "").replace("'", "") == line
    assert "[kserve]" in install_line("armpy-serving[kserve]")


def test_a_misspelled_command_of_a_missing_extension_is_installed_by_the_fix() -> None:
    fix = suggest_name("quantise", ["run", "report"], COMMANDS, "")
    line = install_line("armpy-tools")
    source = f"It comes with armpy-tools, which is missing. Run: {line}"
    assert fix == f"Did you mean 'quantize'? {source}"
    assert suggest_name("quantise", ["quantize"], COMMANDS, "") == "Did you mean 'quantize'?"
    assert suggest_name("walk", ["run"], COMMANDS, "List them") == "List them"
