"""The kit on OrtWebGpu, on Vulkan in software: the SwiftShader of an installed Chromium."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime_ep_webgpu")
pytest.importorskip("armpy_onnxruntime")

DRIVER = Path("/usr/lib/chromium/vk_swiftshader_icd.json")
PARTS = ("Activation/by-hand", "FullyConnected/")


@pytest.mark.slow
@pytest.mark.skipif(not DRIVER.exists(), reason="there is no Chromium with a Vulkan driver")
def test_webgpu_agrees_with_the_reference_on_vulkan_in_software() -> None:
    # In a process of its own: the provider reads its variables once.
    variables = {"ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER": "1", "VK_DRIVER_FILES": str(DRIVER)}
    filters = [word for part in PARTS for word in ("--filter", part)]
    command = [sys.executable, "-m", "armpy", "conformance", "OrtWebGpu", "--json", *filters]
    done = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    if "finds no device" in done.stderr:
        pytest.skip("no Vulkan loader, or WebGPU refuses the driver")
    document = json.loads(done.stdout)
    bad = [r for r in document["results"] if r["outcome"] in ("failed", "crashed")]
    assert document["is_passed"], (document["shortcomings"], bad)
    assert document["layers_run"] > 0
