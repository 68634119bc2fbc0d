"""Models that were compiled here for Arm run there without Numba and LLVM.

The Arm processors are emulated, each with the instructions that it has: one with others ends.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import armpy
from armpy import Model, Network
from armpy.ops.operation import Array
from armpy_testing.digits import MODEL as DIGITS

from .networks import convolutions, image
from .random_networks import random_network
from .support import check_outputs

ROOT = Path(__file__).resolve().parents[3]
TOOL = ROOT.parent / "shared/tools/arm64.sh"
HOME = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "arm64-python"

TARGETS = ("neoverse-n1", "cortex-a72")
SEEDS = (3, 5, 14)

RUN = """
import sys
folder, light, *roots = sys.argv[1:]
sys.path[:] = [place for place in sys.path if "/site" not in place] + [light, *roots]
import importlib.util, json, pathlib, platform
for name in ("numba", "llvmlite", "tflite", "flatbuffers"):
    assert importlib.util.find_spec(name) is None, name
assert platform.machine() == "aarch64"
import numpy as np
import armpy
report = {}
for file in sorted(pathlib.Path(folder).glob("*.armpy")):
    inputs = dict(np.load(file.with_suffix(".in.npz")))
    with armpy.load(file) as model:
        np.savez(file.with_suffix(".out.npz"), **model.run(inputs))
        placement = model.placement
        report[file.stem] = [[*placement.layers_by_backend], placement.to_json()]
print(json.dumps(report))
"""


class Saved(NamedTuple):
    """A network, its inputs, and the outputs that this machine's own code has computed."""

    network: Network | None
    inputs: dict[str, Array]
    outputs: dict[str, Array]


Report = dict[str, tuple[list[str], str]]
"""By model: the backends that its layers ran on, and why."""

Run = Callable[[Path, str], Report]


@pytest.fixture(scope="module")
def run_on_arm(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs every model of a folder in an Arm Python that has what armpy cannot do without."""
    if not TOOL.exists():
        pytest.skip("there is no ../shared/tools/arm64.sh")
    if shutil.which("qemu-aarch64") is None or not (HOME / "root/usr/bin/python3.11").exists():
        pytest.skip("there is no emulated Arm: ../shared/tools/arm64.sh setup makes it")
    light = tmp_path_factory.mktemp("light")
    for pattern in ("numpy*", "pluggy*", "packaging*"):
        for package in (HOME / "site").glob(pattern):
            (light / package.name).symlink_to(package)
    metadata = light / "armpy-0.1.0.dist-info"
    metadata.mkdir()
    installed = importlib.metadata.distribution("armpy")
    for name in ("METADATA", "entry_points.txt"):
        (metadata / name).write_text(installed.read_text(name) or "")
    roots = [str(ROOT / place) for place in ("", "backends/numba_acc", "backends/reference")]

    def run(folder: Path, processor: str) -> Report:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ARMPY")},
            "ARM64_CPU": processor,
            "ARMPY_CACHE_DIR": str(folder / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = ["sh", str(TOOL), "python", "-c", RUN, str(folder), str(light), *roots]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=900
        )
        assert done.returncode == 0, done.stderr
        report: Report = json.loads(done.stdout)
        return report

    return run


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Saved]]:
    """A folder of models that are compiled for Arm, and what they are."""
    folder = tmp_path_factory.mktemp("models")
    networks: dict[str, tuple[Network | None, Model, dict[str, Array]]] = {}
    pixels = np.arange(-128, 128, dtype=np.int8).reshape(1, 16, 16, 1)
    digits = armpy.load(DIGITS)
    networks["digits"] = None, digits, {digits.inputs[0].name: pixels}
    threaded = convolutions(24, 40, 2)
    networks["threads"] = threaded, Model(threaded), image(24, 40)
    for seed in SEEDS:
        network, inputs = random_network(seed)
        networks[f"random{seed}"] = network, Model(network), inputs
    saved_models = {}
    for name, (source_network, model, inputs) in networks.items():
        outputs = model.run(inputs)
        assert model.placement is not None
        assert [*model.placement.layers_by_backend] == ["NumbaAcc"], name
        model.save(folder / f"{name}.armpy", targets=TARGETS)
        np.savez(folder / f"{name}.in.npz", allow_pickle=False, **inputs)
        saved_models[name] = Saved(source_network, inputs, outputs)
        model.close()
    return folder, saved_models


@pytest.mark.parametrize("processor", TARGETS)
def test_models_compiled_for_arm_run_there_without_a_compiler(
    processor: str, run_on_arm: Run, saved: tuple[Path, dict[str, Saved]]
) -> None:
    folder, models = saved
    report = run_on_arm(folder, processor)
    assert report.keys() == models.keys()
    for name, (network, _, outputs) in models.items():
        backends, placement = report[name]
        assert backends == ["NumbaAcc"], placement
        with np.load(folder / f"{name}.out.npz") as file:
            actual = dict(file)
        if network is None:  # everything in it is of 8 bits
            for output, expected in outputs.items():
                np.testing.assert_array_equal(actual[output], expected)
        else:
            check_outputs(network, outputs, actual, f"{processor}, {name}")


def test_code_for_a_better_processor_is_not_run(run_on_arm: Run, tmp_path: Path) -> None:
    with armpy.load(DIGITS) as model:
        pixels = np.arange(-128, 128, dtype=np.int8).reshape(1, 16, 16, 1)
        inputs: dict[str, Array] = {model.inputs[0].name: pixels}
        outputs = model.run(inputs)
        model.save(tmp_path / "digits.armpy", targets=["neoverse-n1"])
    np.savez(tmp_path / "digits.in.npz", allow_pickle=False, **inputs)
    backends, placement = run_on_arm(tmp_path, "cortex-a72")["digits"]
    assert backends == ["CpuRef"]
    assert "no compiler: pip install numba" in placement
    with np.load(tmp_path / "digits.out.npz") as actual:
        for name, expected in outputs.items():
            np.testing.assert_array_equal(actual[name], expected)
