"""Options of `armpy try`, whatever engines are installed."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

from armpy.plugins.discovery.entry_point_cache import installed
from armpy_testing.command_line import armpy_output
from armpy_testing.installed import OLD_METADATA

if not any(entry.value == "armpy_compat.plugin" for entry in installed().entry_points):
    pytest.skip(OLD_METADATA, allow_module_level=True)


@pytest.mark.parametrize(
    ("option", "is_warned"), [("--rounds", True), ("--html=x.html", True), ("--top", False)]
)
def test_the_commands_own_options_after_the_program_are_warned_of(
    tmp_path: Path, option: str, is_warned: bool
) -> None:
    program = tmp_path / "program.py"
    program.write_text("print('no model')")
    code, output = armpy_output(["try", "--rounds", "1", str(program), option, "1"])
    assert code == 1
    assert "loaded no model" in output
    name = option.partition("=")[0]
    warning = f"armpy: warning: {name} is passed to the program: options of armpy try stand before"
    assert (warning in output) == is_warned
