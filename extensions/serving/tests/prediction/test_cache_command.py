"""`armpy cache` and the files that processes of one node share."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from armpy_serving import Predictor
from armpy_testing.command_line import armpy_command
from armpy_testing.models.row_models import write_row_model

for library in ("click", "rich", "PIL"):
    pytest.importorskip(library)


def test_what_processes_of_a_machine_share_is_listed_checked_and_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Models that predictors have been sent, and their compiled forms."""
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))
    model = write_row_model(tmp_path / "model.tflite", 1).read_bytes()
    Predictor(model, backends=["CpuRef"]).prepare()
    sent = tmp_path / "cache" / "node" / f"{sha256(model).hexdigest()}.model"

    def shared(*command: str) -> Any:  # Any: a JSON document
        status = armpy_command(["cache", *command, "--json"])
        caches = json.loads(capsys.readouterr().out)["caches"]
        return status, next(cache for cache in caches if cache["name"] == "node")

    status, cache = shared("verify")
    assert status == 0
    assert cache["backend"] == "armpy"
    assert cache["limit_bytes"] == 16 << 30
    kinds = {Path(entry["name"]).suffix: entry["description"] for entry in cache["entries"]}
    assert kinds[".model"] == "model as it was sent"
    assert kinds[".armpy"].startswith("prepared model")
    sent.write_bytes(b"other")
    status, cache = shared("verify")
    assert status == 1
    problems = {Path(entry["name"]).suffix: entry["problem"] for entry in cache["entries"]}
    assert problems == {".model": "contents have changed", ".armpy": ""}
    assert shared("clear")[1]["deleted"] == 2
    assert not sent.exists()
