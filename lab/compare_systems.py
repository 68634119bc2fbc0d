"""Compares models on two systems of one machine: answers, starts and times of calls.

Usage::

    python lab/compare_systems.py FOLDER MODEL... --python COMMAND --called FOLDER
        [--backend ID,ID] [--instruction-set NAME] [--rounds N] [--group N] [--cold] [--json FILE]

The other system is a Python that COMMAND starts, such as that of `emulate_windows.py`. Both see
FOLDER, which the other system calls by the name after ``--called``; models, inputs and a copy of
this checkout's packages are put there, as if they were installed. NumPy and what else armpy needs
have to be installed on both, in the same versions.

Each process runs a group of models on one backend and one thread, one after the other; the systems
take turns, so that whatever else the machine does falls on both. A start is the load of a model and
its first call; with ``--group 1`` it also imports armpy. Each system has a folder of compiled
kernels and models, which is empty ahead of the first round, and with ``--cold`` ahead of the first
start of each group. Times of calls are the shortest of all rounds.

Integers have to be equal, bit for bit; floats within 1e-5 of the output's largest element, or of 1.
The exit status is 1 if something differs or fails.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from comparison.subjects import ModelFile, Selection, subjects

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("armpy", "backends/numba_acc/armpy_numba_acc", "backends/reference/armpy_reference")
TOLERANCE = 1e-5
"""Most by which floats may differ, relative to the output's largest one, or to 1."""

Report = dict[str, Any]  # Any: numbers, names of backends, or an error


@dataclass(frozen=True, slots=True)
class System:
    """A Python on a system.

    Parameters
    ----------
    name : str
    command : sequence of str
        Starts its Python.
    folder : str
        What it calls the folder of the comparison.
    """

    name: str
    command: Sequence[str]
    folder: str

    def run(self, job: Mapping[str, Any], timeout_s: float) -> dict[str, Report]:  # Any: JSON
        """Run a job; the report of each model."""
        child = f"{self.folder}/system_child.py"
        command = [*self.command, child, self.folder, json.dumps(job)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired:
            return {name: {"error": f"longer than {timeout_s:g} s"} for name in job["models"]}
        lines = (done.stdout + done.stderr).splitlines()
        reports = [json.loads(line) for line in lines if line.startswith('{"model"')]
        end = f"the process ended with {done.returncode}: {lines[-1][:200] if lines else ''}"
        missing: dict[str, Report] = {name: {"error": end} for name in job["models"]}
        return missing | {report["model"]: report for report in reports}


@dataclass(slots=True)
class Row:
    """What was found of a model on a backend."""

    name: str
    backend: str
    errors: list[str] = field(default_factory=list)
    distance: float = 0.0
    """Of floats, relative to the largest one; 0 if every bit is equal."""
    reports: dict[str, list[Report]] = field(default_factory=dict)
    """Of each system, round by round."""

    def figures(self) -> dict[str, float]:
        """Seconds of starts, and microseconds of a call, of each system."""
        found = {}
        for system, rounds in self.reports.items():
            later = rounds[1:] or rounds
            for key in ("start_s", "start_cpu_s"):
                found[f"{system} first {key}"] = rounds[0][key]
                found[f"{system} later {key}"] = min(report[key] for report in later)
            found[f"{system} call_us"] = min(report["call_us"] for report in rounds)
        return found


def main() -> int:
    """Compare; the exit status."""
    options = _options()
    folder: Path = options.folder.resolve()
    _prepare(folder)
    here = System("here", [sys.executable], str(folder))
    other = System("other", shlex.split(options.python), options.called)
    names = list(_subjects(folder, options.models))
    rows: list[Row] = []
    for backend in options.backend:
        for begin in range(0, len(names), options.group):
            group = names[begin : begin + options.group]
            for row in compare(group, backend, (here, other), folder, options):
                rows.append(row)
                print(_line(row), flush=True)
            if options.json is not None:
                text = json.dumps([asdict(row) for row in rows], indent=1)
                options.json.write_text(text + "\n", encoding="utf-8")
    for backend in options.backend:
        print(_summary(backend, [row for row in rows if row.backend == backend]))
    return int(any(row.errors for row in rows))


def compare(
    names: Sequence[str],
    backend: str,
    systems: Sequence[System],
    folder: Path,
    options: argparse.Namespace,
) -> list[Row]:
    """Run models on both systems in turns, and compare what came out."""
    rows = {name: Row(name, backend) for name in names}
    isa = {"ARMPY_NUMBA_ISA": options.instruction_set} if options.instruction_set else {}
    for number in range(options.rounds):
        for system in systems[:: -1 if number % 2 else 1]:
            cache = f"cache-{system.name}"
            if options.cold and not number:
                shutil.rmtree(folder / cache, ignore_errors=True)
            outputs = f"outputs/{backend} {system.name} {number}"
            (folder / outputs).mkdir(parents=True, exist_ok=True)
            job = {
                "models": names,
                "outputs": outputs,
                "backend": backend,
                "cache": cache,
                "seconds": options.seconds,
                "variables": isa | options.variable,
            }
            for name, report in system.run(job, options.timeout_s).items():
                if "error" in report:
                    rows[name].errors.append(f"{system.name}: {report['error']}")
                else:
                    rows[name].reports.setdefault(system.name, []).append(report)
                    if backend not in report["backends"]:
                        rows[name].errors.append(f"{system.name}: {backend} ran no layer")
    for row in rows.values():
        if any(len(row.reports.get(system.name, ())) < options.rounds for system in systems):
            continue
        for number in range(options.rounds):
            first, other = (
                folder / f"outputs/{backend} {system.name} {number}" / f"{row.name}.npz"
                for system in systems
            )
            distance, errors = differences(first, other)
            row.distance = max(row.distance, distance)
            row.errors += errors
    return [*rows.values()]


def differences(expected: Path, actual: Path) -> tuple[float, list[str]]:
    """The largest distance of floats, and what differs by more than it may."""
    largest, errors = 0.0, []
    with np.load(expected) as before, np.load(actual) as after:
        if before.files != after.files:
            return 0.0, [f"outputs {after.files} instead of {before.files}"]
        for name in before.files:
            first, other = before[name], after[name]
            if (first.dtype, first.shape) != (other.dtype, other.shape):
                errors.append(
                    f"{name}: {other.dtype}{other.shape} instead of {first.dtype}{first.shape}"
                )
            elif first.tobytes() != other.tobytes():
                if first.dtype.kind != "f":
                    errors.append(f"{name}: {np.count_nonzero(first != other)} integers differ")
                    continue
                distance = _distance(first.astype(np.float64), other.astype(np.float64))
                largest = max(largest, distance)
                if not distance <= TOLERANCE:
                    errors.append(f"{name}: floats differ by {distance:.2g}")
    return largest, errors


def _distance(first: Any, other: Any) -> float:  # Any: float64 of any shape
    """The largest difference by the largest finite element, or by 1; NaN if one alone is NaN."""
    same = (first == other) | (np.isnan(first) & np.isnan(other))
    largest = max(1.0, float(np.abs(first[np.isfinite(first)]).max(initial=0)))
    with np.errstate(invalid="ignore"):
        return float(np.abs(np.where(same, 0, first - other)).max(initial=0)) / largest


def _prepare(folder: Path) -> None:
    """Copy this checkout's packages into the folder, as they are installed: models are kept then.

    What runs before stays of no use: caches and outputs of an earlier comparison are deleted.
    """
    site = folder / "site-packages"
    for name in (site, *(folder / name for name in ("cache-here", "cache-other", "outputs"))):
        shutil.rmtree(name, ignore_errors=True)
    for name in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, site / Path(name).name, ignore=ignored)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    about = site / f"armpy-{project['version']}.dist-info"
    about.mkdir()
    head = f"Metadata-Version: 2.1\nName: armpy\nVersion: {project['version']}\n"
    (about / "METADATA").write_text(head, encoding="utf-8")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (about / "entry_points.txt").write_text("\n".join(groups), encoding="utf-8")
    shutil.copy(ROOT / "lab" / "comparison" / "system_child.py", folder)


def _subjects(folder: Path, models: Sequence[Path]) -> Iterator[str]:
    """Copy models and write their inputs, golden ones and random ones; the names of both."""
    for name in ("models", "inputs"):
        (folder / name).mkdir(exist_ok=True)
    shared = ROOT.parent / "shared"
    chosen = Selection("models", 0, 0, 1, "", str(shared), [str(path) for path in models])
    for subject in subjects(chosen):
        assert isinstance(subject, ModelFile)
        name = subject.name.removeprefix("models/").replace("/", "__")
        shutil.copy(subject.path, folder / "models" / f"{name}.tflite")
        arrays = {
            f"{call}/{place:02}": array
            for call, arrays in enumerate(subject.calls)
            for place, array in enumerate(arrays)
        }
        np.savez(folder / "inputs" / f"{name}.npz", **arrays)  # type: ignore[arg-type]
        yield name


_SHOWN = {
    "first": ("first start_s", "s"),
    "later": ("later start_s", "s"),
    "call": ("call_us", "us"),
}
"""Figures of a line, by label, with their units."""


def _line(row: Row) -> str:
    """One line of the table."""
    text = f"{row.backend} {row.name:44} "
    if set(row.reports) == {"here", "other"}:
        figures = row.figures()
        text += ", ".join(
            f"{label} {figures[f'here {key}']:.4g} and {figures[f'other {key}']:.4g} {unit}"
            for label, (key, unit) in _SHOWN.items()
        )
        text += f"; {f'{row.distance:.1g} apart' if row.distance else 'equal'}"
    return text + "".join(f"\n    {error}" for error in dict.fromkeys(row.errors))


def _summary(backend: str, rows: Sequence[Row]) -> str:
    """Counts, and medians of the other system's times by this one's."""
    whole = [row.figures() for row in rows if set(row.reports) == {"here", "other"}]
    equal = sum(not row.errors and not row.distance for row in rows)
    near = sum(not row.errors and row.distance > 0 for row in rows)
    text = f"{backend}: {equal} of {len(rows)} equal, {near} within the tolerance"
    for key in (
        "first start_s",
        "first start_cpu_s",
        "later start_s",
        "later start_cpu_s",
        "call_us",
    ):
        ratios = [figures[f"other {key}"] / figures[f"here {key}"] for figures in whole]
        if ratios:
            middle = statistics.median(ratios)
            text += f"; {key} {middle:.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    return text


def _options() -> argparse.Namespace:
    """The command line."""

    def variables(text: str) -> dict[str, str]:
        return dict(word.split("=", 1) for word in text.split(","))

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder that both systems see")
    parser.add_argument("models", nargs="+", type=lambda text: Path(text).resolve())
    parser.add_argument("--python", required=True, help="command that starts the other Python")
    parser.add_argument("--called", required=True, help="the folder's name on the other system")
    parser.add_argument(
        "--backend", type=lambda text: text.split(","), default=["NumbaAcc", "CpuRef"]
    )
    parser.add_argument("--instruction-set", default="", help="of NumbaAcc, on both")
    parser.add_argument(
        "--variable", type=variables, default={}, help="of the environment: NAME=VALUE,NAME=VALUE"
    )
    parser.add_argument("--rounds", type=int, default=3, help="processes of each system and group")
    parser.add_argument("--group", type=int, default=1, help="models of one process")
    parser.add_argument("--seconds", type=float, default=0.5, help="of calls of each model")
    parser.add_argument("--cold", action="store_true", help="empty caches ahead of each group")
    parser.add_argument("--timeout-s", type=float, default=3600.0, help="for one process")
    parser.add_argument("--json", type=Path, help="file for all figures")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
