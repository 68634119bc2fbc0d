"""The command ray-resources."""

from __future__ import annotations

import json
import os

import pytest

from armpy_testing.command_line import armpy_command

for library in ("click", "PIL"):
    pytest.importorskip(library)


def test_devices_are_resources_for_a_cluster_in_two_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert armpy_command(["ray-resources"]) == 0
    resources, labels = capsys.readouterr().out.split()
    counts = json.loads(resources.removeprefix("--resources="))
    assert counts["armpy_NumbaAcc"] == counts["armpy_CpuRef"] == os.cpu_count()
    assert "armpy/CpuRef=CPU_REFERENCE" in labels.removeprefix("--labels=").split(",")
