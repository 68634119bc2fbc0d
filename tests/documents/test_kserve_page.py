"""The page docs/how_to/kserve.md shows commands and code that work, and files that are there."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from extensions.serving.tests.kserve.kserve_server import kserve_server
from tests.support.pages import ROOT, blocks

BLOCKS = blocks(ROOT / "docs" / "how_to" / "kserve.md")
LOCAL, CLUSTER = (
    [shlex.split(line[2:], comments=True) for line in block.text.splitlines()]
    for block in BLOCKS
    if block.kind == "console"
)
CLIENT, EMBEDDED = (block.text for block in BLOCKS if block.kind == "python")
(REQUEST,) = (block.text for block in BLOCKS if block.kind == "sh")


def test_the_commands_serve_a_model_and_the_client_gets_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("kserve", reason="kserve is not installed")
    pytest.importorskip("tritonclient", reason="tritonclient is not installed")
    monkeypatch.chdir(ROOT)
    _install, serve, curl = LOCAL
    assert serve[:3] == ["python", "-m", "armpy_serving.kserve"]
    flags = dict(zip(serve[3::2], serve[4::2], strict=True))
    name = flags["--model_name"]
    model = Path(flags["--model_dir"])
    with kserve_server(model, tmp_path / "log", "--model_name", name) as running:
        asked = [word.replace("localhost:8080", running.http_address) for word in curl]
        completed = subprocess.run(asked, capture_output=True, check=True, timeout=60)
        assert json.loads(completed.stdout)["name"] == name
        script = REQUEST.replace("localhost:8080", running.http_address)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        completed = subprocess.run(
            ["bash", "-ec", script],
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
            capture_output=True,
            check=True,
            timeout=60,
        )
        (output,) = json.loads(completed.stdout)["outputs"]
        assert output["shape"] == [1, 10]
        text = CLIENT.replace("localhost:8081", running.grpc_address)
        completed = subprocess.run(
            [sys.executable, "-c", text], capture_output=True, check=False, timeout=60
        )
        assert completed.returncode == 0, completed.stderr
        assert completed.stdout.startswith(b"[[")
