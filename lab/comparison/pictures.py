"""Compares how many pictures a second `armpy pictures` gets through in two trees.

Pictures of ordinary size are made in a temporary folder: crops of random textures, as JPEG. Rates
are the command's own, from the first picture to the last. Beside them stand the processor seconds
of the processes, and the answers of both trees are compared. Needs Pillow.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armpy.core.turns import take_turns
from armpy_conformance.measure.ratio import median_interval

from .trees import Tree, TreeError

if TYPE_CHECKING:
    from PIL.Image import Image

MODELS = ("mlperf_tiny/vww_96_int8.tflite", "keras/mobilenet_v2_1.0_224_int8.tflite")
"""Models that are shown pictures unless others are named."""

_SIZE = 640, 480
_TEXTURES = 12
_QUALITY = 88
_RATE = re.compile(r"([\d.]+) pictures/s$", re.MULTILINE)

Turn = tuple[float, float]
"""Pictures a second, and processor seconds."""


def make_pictures(folder: Path, count: int) -> None:
    """Make JPEG files, each a crop of a texture with the spectrum of photographs."""
    random = np.random.default_rng(0)
    width, height = _SIZE
    textures = [_texture(random, 2 * width, 2 * height) for _ in range(_TEXTURES)]
    for number in range(count):
        left, top = random.integers(0, [width, height]).tolist()
        picture = textures[number % _TEXTURES].crop((left, top, left + width, top + height))
        picture.save(folder / f"{number:06}.jpg", quality=_QUALITY)


def _texture(random: np.random.Generator, width: int, height: int) -> Image:
    """A picture whose amplitudes fall with the frequency, as photographs' do."""
    from PIL import Image  # noqa: PLC0415 - the other comparisons do without

    rows, columns = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :]
    falling = 1 / np.maximum(np.hypot(rows, columns), 1 / width) ** 1.2
    planes = []
    for _ in range(3):
        spectrum = falling * np.exp(2j * np.pi * random.random(falling.shape))
        plane = np.fft.irfft2(spectrum, (height, width))
        planes.append(np.clip(128 + 48 * plane / plane.std(), 0, 255).astype(np.uint8))
    return Image.fromarray(np.stack(planes, axis=-1))


def run_once(tree: Tree, model: Path, pictures: Path, output: Path) -> Turn:
    """Run the command once; what it says of its rate, and what it has taken."""
    before = os.times()
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "armpy",
            "pictures",
            str(model),
            str(pictures),
            "--output",
            str(output),
        ],
        env=tree.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    after = os.times()
    match = _RATE.search(done.stdout)
    if done.returncode or match is None:
        raise TreeError(f"{tree.name}: code {done.returncode}: {done.stderr[-2000:]}")
    used_s = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    return float(match[1]), used_s


def compare(
    kind: str,
    old: Tree,
    new: Tree,
    options: argparse.Namespace,
) -> tuple[int, dict[str, dict[str, object]]]:
    """Show pictures to each model, and print its figures; how many models' answers differ.

    Raises
    ------
    TreeError
        If a tree cannot be run.
    """
    print(f"{kind}: new rate over old; above 1, the new tree is faster", flush=True)
    below = options.shared.resolve() / "models"
    rows = {}
    with tempfile.TemporaryDirectory(prefix="armpy-pictures-") as scratch:
        pictures = Path(scratch, "pictures")
        pictures.mkdir()
        make_pictures(pictures, options.pictures)
        for model in options.models or [below / name for name in MODELS]:
            rows[model.stem] = _figures(old, new, model, pictures, options.pairs)
            print(model.stem, json.dumps(rows[model.stem]), flush=True)
    return sum(not row["same_answers"] for row in rows.values()), rows


def _figures(
    old: Tree, new: Tree, model: Path, pictures: Path, num_rounds: int
) -> dict[str, object]:
    """Figures of a model."""
    count = len(list(pictures.iterdir()))
    outputs = [pictures.parent / f"{side}.jsonl" for side in ("old", "new")]
    turns = [
        partial(run_once, tree, model, pictures, output)
        for tree, output in zip((old, new), outputs, strict=True)
    ]
    for turn in turns:
        turn()  # compiles what is not compiled yet
    rates = take_turns(dict(enumerate(turns)), 0.0, least=num_rounds)
    ratios = [n[0] / o[0] for o, n in zip(rates[0], rates[1], strict=True)]
    low, high = median_interval(ratios)
    return {
        "ratio": statistics.median(ratios),
        "low": low,
        "high": high,
        "old_per_s": [rate for rate, _ in rates[0]],
        "new_per_s": [rate for rate, _ in rates[1]],
        "old_cpu_ms": _cpu_ms(rates[0], count),
        "new_cpu_ms": _cpu_ms(rates[1], count),
        "same_answers": outputs[0].read_bytes() == outputs[1].read_bytes(),
    }


def _cpu_ms(turns: list[Turn], count: int) -> float:
    """Processor time of a picture, the start of the process included."""
    return 1e3 * statistics.median(used_s for _, used_s in turns) / count
