"""Compares `armpy_compat.pyarmnn` with genuine PyArmNN: models, and networks built by hand.

Debian 12 has PyArmNN 20.08 with its CpuRef. Unpack it, and make an environment for it::

    apt-get download python3-pyarmnn libarmnn22 libarmnntfliteparser22 \
        libarmnn-cpuref-backend22 libflatbuffers2
    for package in *.deb; do dpkg -x $package root; done
    python3.11 -m venv judge && judge/bin/pip install numpy==1.26.4
    python scripts/compare_pyarmnn.py --python judge/bin/python --root root MODELS...

Outputs of 8 bits have to be equal, float32 within 1e-5 of the largest output; ids, shapes and
quantisation of inputs and outputs and the optimiser's messages have to be equal, too.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

WORKER = Path(__file__).parent / "comparison" / "pyarmnn_worker.py"

_AS_PYARMNN = (
    "import armpy_compat, runpy, sys; armpy_compat.install_as_pyarmnn();"
    " sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
)

STEPS = {
    "Activation": 1,
    "Convolution2d": 1,
    "DepthwiseConvolution2d": 1,
    "Division": 1,
    "Pooling2d": 1,
    "Prelu": 1,
    "Resize": 1,
    "mobilenet_v1_0.25_128_quant": 6,
    "mobilenet_v1_0.5_160_quant": 1,
    "mobilenet_v1_1.0_224_quant_embedding_extractor": 9,
    "mobilenet_v2_1.0_224_inat_bird_quant": 3,
    "mobilenet_v2_1.0_224_quant": 1,
    "pretrainedResnet_quant": 1,
    # TensorFlow Lite's results are armpy's; 20.08 has other scales for depthwise channels.
    "mobilenet_v2_quantized_1x3x224x224": 79,
}
"""Most steps by which 8-bit results of a kind of layer, or of a model, may differ: Arm NN's
reference computes with real numbers in float32, armpy in integers as TensorFlow Lite does. Others
have to be equal.
"""

TOLERANCE = 1e-5
"""Most by which float32 results may differ, relative to the largest one, or to 1."""


@dataclass(frozen=True, slots=True)
class Genuine:
    """The genuine library.

    Parameters
    ----------
    python : str
        Interpreter for which it was built, with NumPy 1.
    root : Path
        Folder into which the packages were unpacked.
    """

    python: str
    root: Path

    def environment(self) -> dict[str, str]:
        """Variables with which the interpreter finds it."""
        libraries = self.root / "usr/lib/x86_64-linux-gnu"
        return {
            **os.environ,
            "LD_LIBRARY_PATH": str(libraries),
            "PYTHONPATH": str(self.root / "usr/lib/python3/dist-packages"),
            "ARM_NN_BACKENDS": str(libraries / "armnn22"),
        }

    def run(self, arguments: Sequence[str], timeout_s: float) -> str:
        """Run the worker; what went wrong, or nothing."""
        command = [self.python, str(WORKER), *arguments]
        return _run(command, self.environment(), timeout_s)


def run_armpy(arguments: Sequence[str], timeout_s: float) -> str:
    """Run the worker on armpy; what went wrong, or nothing."""
    command = [sys.executable, "-c", _AS_PYARMNN, str(WORKER), *arguments]
    return _run(command, dict(os.environ), timeout_s)


def _run(command: Sequence[str], environment: dict[str, str], timeout_s: float) -> str:
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        return f"longer than {timeout_s:g} s"
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["crash"])[-1]


def difference(expected: Path, actual: Path) -> str:
    """What differs in the results of two runs; empty if nothing does."""
    if not expected.exists():
        return "not judged: the genuine library crashed or took too long"
    if not actual.exists():
        return "armpy crashed or took too long"
    with np.load(expected) as judged, np.load(actual) as actual_file:
        texts = str(judged["text"]), str(actual_file["text"])
        if "out0" not in judged:
            return f"not judged: {_last(texts[0])}"
        if "out0" not in actual_file:
            return _last(texts[1])
        if texts[0] != texts[1]:
            return f"texts differ: {texts[0]!r} and {texts[1]!r}"
        kind = texts[0].split()[0]
        if not expected.stem.isdecimal():
            kind = expected.stem.partition("__")[2]
        texts_found = [
            _array_difference(judged[name], actual_file[name], STEPS.get(kind, 0))
            for name in judged.files
            if name != "text"
        ]
        return "; ".join(filter(None, texts_found))


def _array_difference(expected: Any, actual: Any, most_steps: int) -> str:  # Any: three types
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return f"{actual.dtype}{actual.shape} instead of {expected.dtype}{expected.shape}"
    if expected.dtype.kind == "f":
        same = (expected == actual) | (np.isnan(expected) & np.isnan(actual))
        largest = max(1.0, float(np.abs(expected[np.isfinite(expected)]).max(initial=0)))
        distance = float(np.abs(np.where(same, 0, expected - actual)).max(initial=0))
        return "" if distance <= TOLERANCE * largest else f"{distance:g} apart of {largest:g}"
    steps = np.abs(expected.astype(np.int64) - actual.astype(np.int64))
    most = int(steps.max(initial=0))
    if most == 0:
        return ""
    count = int(np.count_nonzero(steps))
    allowed = "within the exception" if most <= most_steps else "UNEXPECTED"
    return f"{count} of {steps.size} elements {most} steps apart, {allowed}"


def _last(text: str) -> str:
    return text.splitlines()[-1][:160]


def compare_networks(genuine: Genuine, count: int, folders: Sequence[Path]) -> Iterator[str]:
    """What differs in each random network; those that crash the genuine library are gone over."""
    judged, actual_folder = folders
    first = 0
    while first < count and genuine.run(["networks", str(first), str(count), str(judged)], 900):
        while (judged / f"{first}.npz").exists():
            first += 1
        first += 1
    run_armpy(["networks", "0", str(count), str(actual_folder)], 900)
    for number in range(count):
        name = f"{number}.npz"
        text = difference(judged / name, actual_folder / name)
        if text and (actual_folder / name).exists():
            with np.load(actual_folder / name) as file:
                kind = str(file["text"]).splitlines()[0]
                print(f"network {number}, {kind}: {text}")
        yield text


def compare_model(genuine: Genuine, path: Path, folders: Sequence[Path], timeout_s: float) -> str:
    """What differs for a model."""
    judged, actual_folder = folders
    name = f"{path.parent.name}__{path.stem}.npz"
    genuine.run(["model", str(path), str(judged)], timeout_s)
    if (judged / name).exists():
        run_armpy(["model", str(path), str(actual_folder)], timeout_s)
    text = difference(judged / name, actual_folder / name)
    print(f"{path.parent.name}/{path.name}: {text or 'equal'}", flush=True)
    return text


def _verdict(text: str) -> str:
    if not text:
        return "equal"
    if text.startswith("not judged"):
        return "not judged"
    parts = text.split("; ")
    return "within exceptions" if all("within" in part for part in parts) else "different"


def main() -> int:
    """Compare; 1 if something differs that no exception covers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--python", required=True, help="interpreter of the genuine library")
    parser.add_argument("--root", required=True, type=Path, help="folder with its packages")
    parser.add_argument("--networks", type=int, default=300, help="number of random networks")
    parser.add_argument("--timeout-s", type=float, default=300.0, help="for a model")
    arguments = parser.parse_args()
    genuine = Genuine(arguments.python, arguments.root.resolve())
    with tempfile.TemporaryDirectory() as folder:
        folders = Path(folder, "genuine"), Path(folder, "armpy")
        for place in folders:
            place.mkdir()
        networks = Counter(map(_verdict, compare_networks(genuine, arguments.networks, folders)))
        models = Counter(
            _verdict(compare_model(genuine, path.resolve(), folders, arguments.timeout_s))
            for path in arguments.models
        )
    for subject, verdicts in (("networks", networks), ("models", models)):
        print(
            f"{subject}: " + ", ".join(f"{n} {verdict}" for verdict, n in sorted(verdicts.items()))
        )
    return int(bool(networks["different"] or models["different"]))


if __name__ == "__main__":
    sys.exit(main())
