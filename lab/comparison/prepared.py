"""Whether compiled models give in a Python of few packages what models give in the full one.

`compare.py` runs `main` in a process of each tree, and prints a row for each model: whether
outputs are equal, and the model ran from its programs alone (light); bytes of the file per byte of
the original one; processor time of a first and a second load; modules imported.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import armpy
from armpy.errors import ArmpyError
from armpy.ops.operation import Array

from .sides import Side
from .subjects import measured_models
from .trees import ENTRY_POINTS, Tree, TreeError

PACKAGES = ("numpy", "pluggy", "packaging", "armpy", "armpy_reference", "armpy_numba_acc")
"""Packages of the Python without compilers and parsers; most are for models that are not light."""

_CHILD = Path(__file__).parent / "prepared_child.py"


class Outcome(NamedTuple):
    """What came of a model.

    Parameters
    ----------
    is_equal : bool
        Whether all outputs are the same, bit for bit.
    is_light : bool
        Whether it ran from its programs alone.
    size_ratio : float
        Bytes of the compiled model per byte of the original one.
    load_ms : float
        Processor time of `armpy.load` in a new process, with its imports.
    again_ms : float
        That of a second one in the same process.
    num_modules : int
        Of armpy's, imported after the first run; folders are not counted.
    reason : str
        Why it is not light or not equal.
    """

    is_equal: bool
    is_light: bool
    size_ratio: float
    load_ms: float
    again_ms: float
    num_modules: int
    reason: str


def make_packages(folder: Path) -> Path:
    """A folder for ``sys.path`` that has links to `PACKAGES` and armpy's entry points alone."""
    folder.mkdir()
    for name in PACKAGES:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        place = Path(spec.origin).parent
        (folder / name).symlink_to(place)
        libraries = place.parent / f"{name}.libs"
        if libraries.is_dir():
            (folder / libraries.name).symlink_to(libraries)
    about = folder / "armpy-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: armpy\nVersion: 0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


def random_inputs(model: armpy.Model, seed: int) -> list[Array]:
    """Inputs of the shapes that the model is prepared for; numbers of the type's small ones."""
    random = np.random.default_rng(seed)
    graph = model.graph
    arrays = []
    for value, default in zip(graph.inputs, graph.default_shapes, strict=True):
        shape = value.info.known_shape if value.info.is_fully_shaped else default
        dtype: np.dtype[Any] = value.info.data_type.dtype  # Any: of whatever the input is
        assert shape is not None
        if dtype.kind == "f":
            arrays.append(random.uniform(-1, 1, shape).astype(dtype))
        elif dtype.kind == "b":
            arrays.append(random.integers(0, 2, shape).astype(dtype))
        elif dtype.itemsize == 1:
            noise = np.frombuffer(random.bytes(math.prod(shape)), dtype)
            arrays.append(noise.reshape(shape))
        else:
            arrays.append(random.integers(0, 4, shape).astype(dtype))
    return arrays


def compare(source: Path, packages: Path, folder: Path, *, seed: int = 0) -> Outcome:
    """Prepare a model, run it here and there.

    Parameters
    ----------
    source : Path
        A model's file.
    packages : Path
        What `make_packages` made.
    folder : Path
        Of the user's own, for files.
    seed : int
        Of the inputs.

    Raises
    ------
    ArmpyError
        If the model cannot be loaded, run or saved here.
    RuntimeError
        If the other Python fails.
    """
    path, sent, got = (folder / f"{source.stem}{end}" for end in (".armpy", ".in.npz", ".out.npz"))
    with armpy.load(source) as model:
        model.prepare()
        inputs = random_inputs(model, seed)
        named = dict(zip([spec.name for spec in model.inputs], inputs, strict=True))
        expected = [model.run(named)[spec.name] for spec in model.outputs]
        size = model.save(path)
    np.savez(sent, *inputs)
    command = [sys.executable, "-I", "-S", str(_CHILD), *map(str, (packages, path, sent, got))]
    cache = {"XDG_CACHE_HOME": str(folder / "cache"), "HOME": str(folder)}
    environment = {name: text for name, text in os.environ.items() if not name.startswith("ARMPY_")}
    done = subprocess.run(
        command, env=environment | cache, capture_output=True, text=True, check=False, timeout=600
    )
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode}: {done.stderr[-600:]}")
    about = json.loads(done.stdout)
    with np.load(got) as file:
        outputs = [file[name] for name in file.files]
    pairs = zip(expected, outputs, strict=True)
    wrong = [number for number, (first, other) in enumerate(pairs) if not _are_equal(first, other)]
    reason = f"outputs {wrong} differ; " if wrong else ""
    if not about["is_light"]:
        reason += "; ".join([" and ".join(about["backends"]), *about["refusals"]])[:300]
    return Outcome(
        not wrong,
        about["is_light"],
        size / source.stat().st_size,
        about["load_ms"],
        about["again_ms"],
        about["num_modules"],
        reason,
    )


def _are_equal(left: Array, other: Array) -> bool:
    """Whether two arrays have the same type, shape and bytes."""
    same_form = left.dtype == other.dtype and left.shape == other.shape
    return same_form and left.tobytes() == other.tobytes()


def compare_trees(
    kind: str, old: Side, new: Side, options: argparse.Namespace
) -> tuple[int, dict[str, list[dict[str, Any]]]]:  # Any: as JSON has it
    """Compile models in both trees, and print a row for each; how many are not equal in `new`.

    Raises
    ------
    TreeError
        If a tree cannot be run.
    """
    models = [str(path) for path in measured_models(options)]
    rows: dict[str, list[dict[str, Any]]] = {model: [] for model in models}  # Any: as above
    print(f"{kind:44} tree equal light  size  load ms  again  modules")
    for model in models:
        for side, tree in (("old", old.tree), ("new", new.tree)):
            row = _outcome_in(tree, model)
            rows[model].append(row)
            print(_row(Path(model), side, row), flush=True)
    return sum(not new_row.get("is_equal") for _, new_row in rows.values()), rows


def _outcome_in(tree: Tree, model: str) -> dict[str, Any]:  # Any: as JSON has it
    """The fields of a model's `Outcome` in a tree, or the error alone."""
    process = tree.start("prepared", output=subprocess.PIPE)
    written, _ = process.communicate(json.dumps(model))
    if process.returncode:
        raise TreeError(f"{tree.name}: {model}: a process ended with code {process.returncode}")
    row: dict[str, Any] = json.loads(written)
    return row


def _row(model: Path, side: str, row: dict[str, Any]) -> str:  # Any: as JSON has it
    """One line of the table."""
    title = f"{model.parent.name}/{model.stem}"[-44:]
    if "error" in row:
        return f"{title:44} {side:4} {row['error']}"
    equal, light = ("yes" if row[name] else "NO" for name in ("is_equal", "is_light"))
    numbers = "{size_ratio:5.2f} {load_ms:8.2f} {again_ms:6.2f} {num_modules:8}".format(**row)
    return f"{title:44} {side:4} {equal:5} {light:5} {numbers}  {row['reason']}"


def main() -> None:
    """Compare the model that standard input names; write the outcome as JSON."""
    source = Path(json.loads(sys.stdin.read()))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        packages = make_packages(folder / "packages")
        try:
            row: dict[str, object] = compare(source, packages, folder)._asdict()
        except (ArmpyError, RuntimeError) as error:
            row = {"error": f"{type(error).__name__}: {str(error)[-400:]}"}
    print(json.dumps(row))
