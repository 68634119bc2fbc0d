"""Mutations of code are single, where they say, and known ones are caught or survive."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from armpy_testing.effort import effort
from scripts.mutation.sites import Site, mutated, sites
from scripts.mutation.twin import TWIN_ID, Sources

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "scripts" / "mutate.py"

TOY = '''
"""A module."""
import numpy as np

def clamp(values: np.ndarray, low: int = 3) -> np.ndarray:
    """Clamp."""
    if low > 2:
        raise ValueError(f"{low + 1}")
    return np.maximum(values[1:], low)
'''

MUTATIONS = [
    "{}",
    "comparison: low > 2 -> low >= 2",
    "comparison: low > 2 -> low <= 2",
    "condition: if low > 2: -> if not low > 2:",
    "constant: 3 -> 4",
    "constant: 3 -> 2",
    "constant: 2 -> 3",
    "constant: 2 -> 1",
    "constant: 1 -> 2",
    "constant: 1 -> 0",
    "slice: 1: -> :",
    "name: np.maximum -> np.minimum",
    "arguments: np.maximum(values[1:], low) -> np.maximum(low, values[1:])",
    "left out: np.maximum(values[1:], low) -> values[1:]",
]

# What the kit once let through, and what is like it.
KNOWN = (
    "workloads.detection_post_process: comparison: scores > low -> scores >= low",
    "workloads.detection_post_process: comparison: values > overlap -> values >= overlap",
    "workloads.box_with_nms_limit: comparison: "
    "overlap < np.float32(self.operation.iou_threshold) -> "
    "overlap <= np.float32(self.operation.iou_threshold)",
    "numerics.activations: comparison: values >= 0 -> values < 0",
    "numerics.resize: constant: 10 -> 9",
    "numerics.resize: operator: scale // 2 - unit // 2 -> scale // 2 + unit // 2",
    "numerics.fixed_point: comparison: shift > 30 -> shift <= 30",
    "numerics.fixed_point: operator left out: -shift -> shift",
    "workloads.transpose_convolution2d: operator: kx - self._left -> kx + self._left",
    "workloads.transpose_convolution2d: operator: size - 1 - offset -> size - 1 + offset",
    "quantization: statement: "
    "np.clip(values, *info.data_type.integer_range, out=values) -> nothing",
    "farm_hash: constant: 47 -> 48",
    "farm_hash: operator: y + v[0] -> y - v[0]",
    "farm_hash: comparison: length <= 16 -> length < 16",
    "philox: constant: 10 -> 11",
)

NO_MATTER = '''
import logging
from typing import TYPE_CHECKING, Callable, TypeVar

import numpy as np
import numpy.typing as npt

from armpy.core.vlog import vlog

if TYPE_CHECKING:
    LIMIT = 1 + 1

T = TypeVar("T", int, float)
Table = Callable[[npt.NDArray[np.float32]], int]
_log = logging.getLogger(__name__)


class Count:
    """Counts 1 or 2."""

    def __repr__(self) -> str:
        return "one" if len("abc") > 2 else "two"


def pairs(left, right):
    _log.info("%d of %d", len(left) + 1, 2)
    vlog("toy", "%s", 3)
    return list(zip(*left, strict=True))
'''

WITH_TESTS = {
    "toy/counting.py": """
LEAST = 2

def wait(number):
    while number > 0:
        number -= 1
    return number

def clamp(number):
    seen = 7
    return max(number, LEAST)

def unreached(number):
    return number + 5
""",
    "extensions/part/toy_part/in_child.py": """
def double(number):
    return number * 9
""",
    "tests/test_in_child.py": """
import subprocess, sys

def test_double():
    code = "from toy_part.in_child import double; raise SystemExit(double(2))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 18
""",
    "tests/test_toy.py": """
from toy.counting import clamp, wait

def test_wait():
    assert wait(3) == 0

def test_clamp():
    assert clamp(3) == 3
    assert clamp(-3) == 2

def test_that_fails():
    assert clamp(3) == 4
""",
}
FATES = {
    "constant: 9 -> 10": "caught by tests/test_in_child.py::test_double",
    "constant: 2 -> 3": "caught by tests/test_toy.py::test_clamp",
    "constant: 7 -> 8": "SURVIVED",
    "constant: 5 -> 6": "SURVIVED",
    "name: max -> min": "caught by tests/test_toy.py::test_clamp",
    "operator: number -= 1 -> number += 1": "caught by the limit of time",
}


def toy_sites() -> list[Site]:
    return list(sites("toy", TOY))


def test_everything_but_annotations_errors_and_docstrings_is_mutated() -> None:
    texts = {site.text.removeprefix("toy: ") for site in toy_sites()}
    assert texts == set(MUTATIONS) - {"{}"}


def test_code_that_cannot_matter_is_not_mutated() -> None:
    assert [site.text for site in sites("toy", NO_MATTER)] == []


@pytest.mark.parametrize("site", toy_sites(), ids=lambda site: site.text)
def test_a_mutation_changes_one_place(site: Site) -> None:
    whole = mutated(TOY, site)
    assert whole.count("def clamp(values: np.ndarray, low: int=") == 1
    left = [text.text for text in sites("toy", whole)]
    assert site.text not in left


def test_a_twin_computes_what_its_changed_module_says() -> None:
    sources = Sources()
    text = sources.texts["workloads.rank"]
    twin = sources.twin({"workloads.rank": text.replace('"""', '"""Changed. ', 1)})
    assert twin.get_id() == TWIN_ID
    module = sys.modules[type(twin).__mro__[1].__module__]
    assert module.__name__.startswith("armpy_reference_twin.")


def test_operations_that_need_a_module_are_found_through_other_modules() -> None:
    sources = Sources()
    assert sources.operations_of("farm_hash") == {"LshProjection"}
    assert {"Convolution2d", "Pooling2d", "Lstm"} <= sources.operations_of("workload")
    assert "Activation" in sources.operations_of("numerics.gemmlowp")


def test_mutations_that_once_escaped_can_still_be_made() -> None:
    texts = {site.text for module, text in Sources().texts.items() for site in sites(module, text)}
    assert set(KNOWN) - texts == set()


@pytest.mark.nightly
def test_mutations_that_once_escaped_are_caught() -> None:
    command = [
        sys.executable,
        str(SCRIPT),
        "kit",
        "--variations",
        "0",
        "--models",
        "0",
        "--least",
        "1",
    ]
    tried = KNOWN[:: effort(4, 1)]
    for text in tried:
        command += ["--choose", text]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    number = int(done.stdout.partition(" of ")[0])
    assert number >= len(tried)
    assert f"caught {number} of {number} that change any result at all" in done.stdout


@pytest.fixture
def toy_tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    for name, text in WITH_TESTS.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    return tree


def test_caught_mutants_are_distinguished_from_survivors(toy_tree: Path) -> None:
    part = "extensions/part/toy_part"  # a distribution of its own, as armpy's extensions are
    command = [sys.executable, str(SCRIPT), "tests", "toy", part, "--tree", str(toy_tree)]
    command += ["--tests", "tests", "--limit", "5", "--least", "0.5"]
    for text in FATES:
        for file in ("toy/counting.py", f"{part}/in_child.py"):
            command += ["--choose", f"{file}: {text}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    fates = {
        before.partition(": ")[2]: after.strip()
        for before, after in pairwise(lines)
        if after.startswith("    ")
    }
    assert {text: fates.get(text) for text in FATES} == FATES
    assert re.search(r"^toy +5 +3 +2 +60%$", done.stdout, re.MULTILINE), done.stdout
    assert re.search(rf"^{part} +1 +1 +0 +100%$", done.stdout, re.MULTILINE), done.stdout
    assert "survived  toy/counting.py:10: constant: 7 -> 8" in lines
    assert {name: (toy_tree / name).read_text() for name in WITH_TESTS} == WITH_TESTS


def test_tests_that_were_renamed_since_they_were_measured_catch_nothing(toy_tree: Path) -> None:
    command = [sys.executable, str(SCRIPT), "tests", "toy/counting.py", "--tree", str(toy_tree)]
    command += ["--tests", "tests/test_toy.py", "--measured", str(toy_tree / "measured")]
    command += ["--choose", "toy/counting.py: name: max -> min"]
    file = toy_tree / "tests" / "test_toy.py"
    rows = []
    for name in ("test_clamp", "test_renamed"):
        file.write_text(file.read_text().replace("test_clamp", name))
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        rows.append(re.search(r"^toy/counting.py +(\d) +(\d)", done.stdout, re.MULTILINE))
    assert [match and match.groups() for match in rows] == [("1", "1"), ("0", "0")]
