"""Compares how many pictures a second `armpy pictures` gets through in two source trees.

Pictures of ordinary size are made in a temporary folder: crops of random textures, as JPEG. Both
trees run the command on all of them, in turns whose order changes every round, so that whatever
else the machine does falls on both alike. Rates are the command's own, from the first picture to
the last; a ratio above 1 means that the new tree is faster. Beside them stand the processor seconds
of the processes, and the answers of both trees are compared.

Usage::

    python -m benchmarks.many_pictures OLD [NEW] [--models MODEL...] [--pictures N] [--size WxH]
        [--rounds N] [--suffix csv] [--json FILE]

OLD and NEW are folders or revisions; NEW is this checkout if left out.
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

import numpy as np
from PIL import Image

from armpy.core.turns import take_turns
from armpy_conformance.measure.ratio import median_interval
from benchmarks.common import ROOT, description, write_json
from scripts.comparison.trees import Store, Tree, TreeError, default_store

SHARED = ROOT.parent / "shared" / "models"
MODELS = ("mlperf_tiny/vww_96_int8.tflite", "keras/mobilenet_v2_1.0_224_int8.tflite")

_TEXTURES = 12
_QUALITY = 88
_RATE = re.compile(r"([\d.]+) pictures/s$", re.MULTILINE)

Turn = tuple[float, float]
"""Pictures a second, and processor seconds."""


def make_pictures(folder: Path, count: int, size: tuple[int, int]) -> None:
    """Make JPEG files, each a crop of a texture with the spectrum of photographs.

    Parameters
    ----------
    folder : Path
    count : int
    size : tuple of int
        Width and height.
    """
    random = np.random.default_rng(0)
    width, height = size
    textures = [_texture(random, 2 * width, 2 * height) for _ in range(_TEXTURES)]
    for number in range(count):
        left, top = random.integers(0, [width, height]).tolist()
        picture = textures[number % _TEXTURES].crop((left, top, left + width, top + height))
        picture.save(folder / f"{number:06}.jpg", quality=_QUALITY)


def _texture(random: np.random.Generator, width: int, height: int) -> Image.Image:
    """A picture whose amplitudes fall with the frequency, as photographs' do."""
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
    old: Tree, new: Tree, model: Path, pictures: Path, options: argparse.Namespace
) -> dict[str, object]:
    """Figures of a model."""
    outputs = {
        tree: pictures.parent / f"{side}.{options.suffix}"
        for side, tree in (("old", old), ("new", new))
    }
    turns = {tree: partial(run_once, tree, model, pictures, outputs[tree]) for tree in outputs}
    for turn in turns.values():
        turn()  # compiles what is not compiled yet
    rates = take_turns(turns, 0.0, least=options.rounds)
    ratios = [n[0] / o[0] for o, n in zip(rates[old], rates[new], strict=True)]
    low, high = median_interval(ratios)
    return {
        "ratio": statistics.median(ratios),
        "low": low,
        "high": high,
        "old_per_s": [rate for rate, _ in rates[old]],
        "new_per_s": [rate for rate, _ in rates[new]],
        "old_cpu_ms": _cpu_ms(rates[old], options.pictures),
        "new_cpu_ms": _cpu_ms(rates[new], options.pictures),
        "same_answers": outputs[old].read_bytes() == outputs[new].read_bytes(),
    }


def _cpu_ms(turns: list[Turn], count: int) -> float:
    """Processor time of a picture, the start of the process included."""
    return 1e3 * statistics.median(used_s for _, used_s in turns) / count


def main() -> int:
    """Measure what the command line asks for; the exit status."""
    options = _options()
    results: dict[str, dict[str, object]] = {}
    try:
        store = Store(default_store())
        old, new = (Tree.named(text, store, ROOT) for text in (options.old, options.new))
        with tempfile.TemporaryDirectory(prefix="armpy-pictures-") as scratch:
            pictures = Path(scratch, "pictures")
            pictures.mkdir()
            make_pictures(pictures, options.pictures, options.size)
            for model in options.models:
                figures = results[model.stem] = compare(
                    old, new, model.resolve(), pictures, options
                )
                print(model.stem, json.dumps(figures), flush=True)
    except TreeError as error:
        print(f"many_pictures: error: {error}", file=sys.stderr)
        return 2
    write_json(options.json, results)
    return 0


def _size(text: str) -> tuple[int, int]:
    """Width and height of ``640x480``."""
    width, _, height = text.partition("x")
    return int(width), int(height)


def _options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("old", help="folder or revision")
    parser.add_argument("new", nargs="?", default=str(ROOT), help="folder or revision; this one")
    models = [SHARED / name for name in MODELS]
    parser.add_argument("--models", nargs="+", type=Path, default=models, metavar="MODEL")
    parser.add_argument("--pictures", type=int, default=2000)
    parser.add_argument("--size", type=_size, default=(640, 480), metavar="WxH")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--suffix", choices=("csv", "jsonl", "npz"), default="jsonl")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
