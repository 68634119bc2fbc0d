"""Parts of the documentation site that `lab/website/` makes."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="needs the extra docs")

from sphinx.errors import ExtensionError  # after the check that it is there

from lab.website import commands


def test_a_command_that_fails_ends_the_build_with_its_output(tmp_path: Path) -> None:
    assert commands.run(["echo first"], tmp_path) == "first\n"
    with pytest.raises(ExtensionError, match=r"exit code 3 of: .*\nthe reason"):
        commands.run(["echo first", "echo the reason >&2; exit 3"], tmp_path)
