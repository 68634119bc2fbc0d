"""Parts of the documentation site that `lab/website/` makes."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="needs the extra docs")

from sphinx.errors import ExtensionError  # after the check that it is there

from lab.website import commands, speeds


def test_a_command_that_fails_ends_the_build_with_its_output(tmp_path: Path) -> None:
    assert commands.run(["echo first"], tmp_path) == [("echo first", "first\n")]
    with pytest.raises(ExtensionError, match=r"exit code 3 of: .*\nthe reason"):
        commands.run(["echo first", "echo the reason >&2; exit 3"], tmp_path)


def test_the_chart_has_a_dot_for_each_network_that_was_measured() -> None:
    text = speeds.PERFORMANCE.read_text("utf-8")
    processors = speeds.read(text)
    assert ("hello_world_float", 0.27) in processors["Intel Sapphire Rapids (AMX)"]
    assert ("hello_world_float", 2.25) in processors["AMD Zen 4 (AVX-512, VNNI)"]
    assert speeds.draw(processors).count("<circle") == sum(map(len, processors.values())) > 100
    with pytest.raises(ValueError, match="other columns"):
        speeds.read(
            text.replace("| Zen 4 µs | best peer | ratio |", "| Zen 4 µs | ratio | best peer |")
        )
