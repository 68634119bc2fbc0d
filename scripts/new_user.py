"""Follows a new user of armpy from nothing to results in seven commands, and times it.

Usage::

    python scripts/new_user.py [--float-model FILE] [--model FILE] [--pictures DIR] [--keep DIR]

An empty environment, the wheel, a picture, a folder of pictures into a CSV file, a benchmark of two
backends, a report, and a float model made one of small integers. Nothing is taken from earlier
runs: neither what armpy keeps on disk nor what pip does. Where Chromium is installed, it opens the
report. Needs the package ``build`` and a package index; without a float model, six commands run.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
PICTURES = ROOT / "examples" / "digits" / "pictures"
LIMIT_S = 300.0
"""What all of it may take on two cores."""

_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
_HEADLESS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--virtual-time-budget=5000", "--dump-dom"),
)


@dataclass(frozen=True)
class Step:
    """One command of the user's.

    Parameters
    ----------
    command : sequence of str
        As the user types it.
    check : callable
        Describes errors in the files that it has written; empty if none.
    """

    command: Sequence[str]
    check: Callable[[], str] = str


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything; 1 if a command fails or it takes too long."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, default=DIGITS, help="reads pictures")
    parser.add_argument("--pictures", type=Path, default=PICTURES, help="a folder")
    parser.add_argument("--float-model", type=Path, help="takes pictures; is quantised")
    parser.add_argument("--keep", type=Path, help="leave the written files in this folder")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        place = options.keep or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        wheel = build_wheel(Path(folder, "wheel"))
        for name in ("model", "pictures", "float_model"):
            copy(getattr(options, name), place / name)
        steps = steps_of(place, wheel, has_float_model=options.float_model is not None)
        return follow(steps, place)


def build_wheel(folder: Path) -> Path:
    """Make the wheel, which a user would have from a package index."""
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the wheel cannot be built:\n{done.stdout}{done.stderr}")
    (wheel,) = folder.glob("*.whl")
    return wheel


def copy(source: Path | None, target: Path) -> None:
    """Put a file or folder where the user has it."""
    if source is None:
        return
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, target.with_suffix(source.suffix))


def steps_of(place: Path, wheel: Path, *, has_float_model: bool) -> list[Step]:
    """The commands, in order."""
    armpy = str(Path("user", "bin", "armpy"))
    (model,) = (path.name for path in place.glob("model.*"))
    picture = sorted((place / "pictures").iterdir())[0].relative_to(place)
    pip = [str(Path("user", "bin", "pip")), "install", "--quiet", "--no-cache-dir"]
    compared = ["--backends", "NumbaAcc", "--backends", "CpuRef"]
    steps = [
        Step([sys.executable, "-m", "venv", "user"]),
        Step([*pip, f"{wheel}[cli]", str(ROOT / "extensions" / "tools")]),
        Step([armpy, "run", model, str(picture)]),
        Step(
            [armpy, "run", model, "pictures", "--output", "results.csv"],
            lambda: wrong_rows(place / "results.csv", place / "pictures"),
        ),
        Step([armpy, "benchmark", model, *compared, "--time", "1"]),
        Step(
            [armpy, "report", model, "-o", "report.html"],
            lambda: wrong_page(place / "report.html", model),
        ),
    ]
    if has_float_model:
        (float_model,) = (path.name for path in place.glob("float_model.*"))
        target = "quantized.tflite"
        steps.append(
            Step(
                [armpy, "quantize", float_model, "--data", "pictures", "-o", target],
                lambda: "" if (place / target).is_file() else f"there is no {target}",
            )
        )
    return steps


def follow(steps: Sequence[Step], place: Path) -> int:
    """Run commands one after the other and time them; 1 if one fails or all take too long."""
    environment = {**os.environ, "ARMPY_CACHE_DIR": str(place / "cache")}
    total_s = 0.0
    for step in steps:
        shown = " ".join([Path(step.command[0]).name, *step.command[1:]])
        print(f"\n$ {shown}", flush=True)
        begin = time.monotonic()
        done = subprocess.run(step.command, cwd=place, env=environment, check=False)
        took_s = time.monotonic() - begin
        total_s += took_s
        problem = f"exit code {done.returncode}" if done.returncode else step.check()
        print(f"-- {took_s:.1f} s{'; ' + problem if problem else ''}", flush=True)
        if problem:
            return 1
    is_quick = total_s <= LIMIT_S
    print(
        f"\n{len(steps)} commands, no error, {total_s:.0f} s of at most {LIMIT_S:.0f} s"
        f" on {os.cpu_count()} processors{'' if is_quick else ': too slow'}"
    )
    return 0 if is_quick else 1


def wrong_rows(table: Path, pictures: Path) -> str:
    """The fault of a table of results; empty if it has a row for each picture."""
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    count = sum(path.is_file() for path in pictures.iterdir())
    return "" if len(rows) == count else f"{len(rows)} rows for {count} pictures"


def wrong_page(page: Path, model: str) -> str:
    """Faults of a report, as Chromium shows it where it is installed."""
    browser = next(filter(None, map(shutil.which, _CHROMIUM)), None)
    if browser is None:
        print("no Chromium is installed: the report was not opened")
        return "" if page.is_file() else "there is no report"
    with tempfile.TemporaryDirectory() as folder:
        command = [browser, *_HEADLESS, f"--user-data-dir={folder}", page.resolve().as_uri()]
        begin = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(f"opened in {Path(browser).name} in {time.monotonic() - begin:.1f} s")
    return "" if model in done.stdout and "<svg" in done.stdout else "the page shows nothing"


if __name__ == "__main__":
    raise SystemExit(main())
