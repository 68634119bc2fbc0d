"""Whether compiled models give in a Python of few packages what models give in the full one."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import armpy
from armpy.ops.operation import Array

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
    (about / "entry_points.txt").write_text(
        "[armpy.backends]\n"
        "CpuRef = armpy_reference:ReferenceBackend\n"
        "NumbaAcc = armpy_numba_acc:NumbaBackend\n"
        "[armpy.programs]\n"
        "NumbaAcc = armpy_numba_acc.files:NumbaPrograms\n"
    )
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
