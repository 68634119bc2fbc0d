"""Commands of the kit that another extension adds, where it is not installed."""

from __future__ import annotations

import pytest

pytest.importorskip("click")

from armpy.plugins import install_line
from armpy_conformance.cli.conformance.command import command


@pytest.mark.parametrize("name", ["fuzz", "nnapi-vectors", "random-graphs"])
def test_a_missing_command_names_the_extension_to_install(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # Without the command line's own group, no plugin has added its commands.
    with pytest.raises(SystemExit, match="2"):
        command([name, "--backend", "CpuRef"], "conformance")
    error = capsys.readouterr().err
    assert f"the command 'conformance {name}' is missing: armpy-nnapi is not installed" in error
    assert f"Run: {install_line('armpy-nnapi')}" in error
