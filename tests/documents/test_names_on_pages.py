"""Pages name what the packages have: classes, options, passes, phases, hooks and targets."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

import armpy
import armpy.profiling
import armpy_nnapi as nnapi
from armpy import NetworkProperties, OptimizerOptions
from armpy.backend import IBackendProfiling
from armpy.compiler import BUILT_IN_PASSES
from armpy.core.vlog import TAGS
from armpy.plugins.hooks.checks import HOOKS
from armpy.profiling import Profiler, Summary, TracePhase
from armpy.types import Preference
from tests.support.pages import ROOT


def page(name: str) -> str:
    """The text of a page of the documentation."""
    return (ROOT / "docs" / name).read_text("utf-8")


def first_cells(text: str) -> list[str]:
    """The code in the first column of a page's tables."""
    return re.findall(r"^\| `(\w+)` \|", text, re.M)


def test_the_page_of_classes_has_every_public_name_once_and_load_first() -> None:
    text = page("reference/api/armpy.rst")
    names = re.findall(r"^\.\. auto(?:class|function|data):: (\w+)$", text, re.M)
    assert names[:2] == ["load", "Model"]
    assert sorted(names) == sorted(set(armpy.__all__) - {"ops"})


def test_the_page_on_diagnosis_names_every_tag_and_every_phase() -> None:
    rows = {*first_cells(page("how_to/diagnosis.md"))}
    assert rows >= {*TAGS}
    assert rows >= {phase.value for phase in TracePhase}


def test_the_page_on_nnapi_names_classes_members_and_functions() -> None:
    text = page("reference/nnapi.md")
    classes = ("Model", "Memory", "Compilation", "Execution", "Device", "DeviceManager")
    names = re.findall(r"`(\w+)\.(\w+)", text)
    assert len(names) > 10
    for owner, member in names:
        if owner in classes:
            assert hasattr(getattr(nnapi, owner), member), f"{owner}.{member}"
    for name in re.findall(r"`([A-Z]+_[A-Z_]+_NS|validate_\w+|minimum_\w+|graph_dump)`", text):
        assert name in nnapi.__all__


def test_the_page_on_onnx_files_lists_all_deviations() -> None:
    pytest.importorskip("onnx")
    from extensions.onnx.tests.onnx_deviations import DEVIATIONS, REFUSALS

    tables = page("reference/onnx_files.md").split("\n## ")
    rows = [re.findall(r"^\| ([^|]+?) \|", table, re.M)[1:] for table in tables]
    tolerated, refused = (set(found) - {"---"} for found in rows[1:3])
    assert {case.kind for case in DEVIATIONS} <= tolerated
    assert set(REFUSALS) <= refused


def test_the_page_on_the_optimizer_lists_every_pass_and_names_options() -> None:
    text = page("how_to/optimizer.md")
    rows = re.findall(r"^\| `(\w+)` \| (on|off) \|", text, re.M)
    assert {name: state == "on" for name, state in rows} == dict(BUILT_IN_PASSES)
    known = {field.name for kind in (OptimizerOptions, NetworkProperties) for field in fields(kind)}
    names = set(re.findall(r"(?:OptimizerOptions|NetworkProperties)\((\w+)=", text))
    assert names <= known
    assert names


def test_the_page_on_placement_lists_every_preference() -> None:
    assert first_cells(page("how_to/placement.md")) == [
        preference.value for preference in Preference
    ]


def test_the_page_on_profiling_names_members_and_every_phase_of_a_load() -> None:
    text = page("how_to/profiling.md")
    names = re.findall(r"`profiler\.(\w+)", text)
    assert names
    for name in names:
        assert hasattr(Profiler(), name), name
    for name in re.findall(r"`armpy\.profiling\.(\w+)", text):
        assert hasattr(armpy.profiling, name), name
    for name in re.findall(r"profiling\.(\w+)\(", text):
        assert hasattr(IBackendProfiling, name) or hasattr(armpy.profiling, name), name
    parts = re.findall(r"^\| `(\w+)`", text, re.M)
    assert parts
    assert set(parts) <= set(Summary.__dataclass_fields__)
    sources = Path(armpy.__file__).parent.rglob("*.py")
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    phases = set(re.findall(r"phase\(\"([a-z ]+)\"", code)) - {"load", "prepare", "optimise"}
    assert len(phases) >= 10
    for name in phases:
        assert f"`{name}`" in " ".join(text.split()), name


def test_the_page_on_starts_names_targets(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("click")
    from armpy_testing.command_line import armpy_command

    text = page("how_to/starts.md")
    assert armpy_command(["compile", "--target", "help"]) == 0
    known = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    named = set(re.findall(r"--target ([\w-]+)", text)) - {"help"}
    named |= set(re.findall(r'"([\w-]+)"', re.findall(r"targets=\[(.*?)\]", text)[0]))
    assert len(named) == 3
    assert named <= known


def test_the_page_on_plugins_describes_the_hooks_of_its_example_and_names_all() -> None:
    text = page("how_to/write_a_plugin.md")
    example = ROOT / "examples" / "plugins" / "chain" / "armpy_chain" / "__init__.py"
    hooks = re.findall(r"@hookimpl\ndef (\w+)", example.read_text("utf-8"))
    section = text.partition("## 3. ")[2].partition("\n## ")[0]
    assert re.findall(r"^- `(\w+)`:", section, re.M) == hooks
    assert [hook for hook in HOOKS if f"| `{hook}(" not in text] == []
