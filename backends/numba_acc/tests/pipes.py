"""How busy the innermost loops of assembly for Arm keep a processor, by LLVM's models of it.

References
----------
Multiplications per cycle: Arm's Software Optimization Guides of Neoverse N1, V1 and V2 and of
Cortex-A76, tables of ASIMD integer and floating-point instructions.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

MULTIPLICATIONS = {"fmla": 4, "sdot": 16, "usdot": 16, "sudot": 16, "usmmla": 32, "bfmmla": 16}
MULTIPLICATIONS |= {"smlal": 4, "smlal2": 4}
"""Of one instruction on registers of 16 bytes."""

_ITERATIONS = 100
_COMMENT, _LABEL = re.compile(r"\s*//.*"), re.compile(r"[.\w]+:")
_BRANCH = re.compile(r"(?:b(?:\.\w+)?|cbn?z|tbn?z)\s.*?(\.?L\w+)$")


@dataclass(frozen=True, slots=True)
class Core:
    """A processor.

    Parameters
    ----------
    name : str
    model : str
        What LLVM calls the one whose pipes are alike.
    per_cycle : int
        Multiplications of float32, bytes, or pairs of rows that begin in a cycle.
    long_per_cycle : int
        Of 16-bit elements that are added to 32 bits.
    """

    name: str
    model: str
    per_cycle: int
    long_per_cycle: int

    def peak(self, instruction: str) -> int:
        """Multiplications per cycle."""
        is_long = instruction.startswith("smlal")
        count = self.long_per_cycle if is_long else self.per_cycle
        return count * MULTIPLICATIONS[instruction]


CORES = (
    Core("neoverse-n1", "neoverse-n1", 2, 1),
    # LLVM takes it for a Cortex-A57, which has half the pipes; N1 is made of it.
    Core("cortex-a76", "neoverse-n1", 2, 1),
    Core("neoverse-v1", "neoverse-v1", 4, 2),
    Core("neoverse-v2", "neoverse-v2", 4, 2),
)


def find_mca() -> str:
    """LLVM's analyser, of version 19 or newer; empty if there is none."""
    names = ["llvm-mca", *(f"llvm-mca-{version}" for version in range(30, 18, -1))]
    for path in filter(None, map(shutil.which, names)):
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        match = re.search(r"version (\d+)", said.stdout)
        if match and int(match.group(1)) >= 19:
            return path
    return ""


def innermost_loops(assembly: str) -> list[list[str]]:
    """Instructions of loops that have no other one in them, from their label to their branch."""
    lines = [_COMMENT.sub("", line).strip() for line in assembly.splitlines()]
    lines = [line for line in lines if line and (line[0] != "." or _LABEL.fullmatch(line))]
    labels = {line[:-1]: number for number, line in enumerate(lines) if _LABEL.fullmatch(line)}
    spans = []
    for number, line in enumerate(lines):
        match = _BRANCH.match(line)
        if match and labels.get(match.group(1), number) < number:
            spans.append((labels[match.group(1)], number + 1))
    inner = [
        (first, end)
        for first, end in spans
        if not any(
            first <= other[0] and other[1] <= end and other != (first, end) for other in spans
        )
    ]
    return [[line for line in lines[a:b] if not _LABEL.fullmatch(line)] for a, b in inner]


def multiplications(loop: Sequence[str], instruction: str) -> int:
    """Of a turn of a loop."""
    words = {line.split()[0] for line in loop}
    wanted = {name for name in words if name.removesuffix("2") == instruction.removesuffix("2")}
    wanted |= words & {"sudot"} if instruction == "usdot" else set()
    counted = sum(line.split()[0] in wanted for line in loop)
    return counted * MULTIPLICATIONS[instruction]


def cycles(loop: Sequence[str], core: Core, mca: str) -> float:
    """Of a turn, if all data are in the first level of the cache."""
    text = ".Lagain:\n" + "\n".join(re.sub(r"\.?LBB\w+", ".Lagain", line) for line in loop)
    command = [mca, "-mtriple=aarch64-linux-gnu", f"-mcpu={core.model}"]
    command += ["-mattr=+dotprod,+i8mm,+bf16,+fullfp16", f"-iterations={_ITERATIONS}"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    match = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
    assert match is not None, done.stdout
    return int(match.group(1)) / _ITERATIONS


def share_of_peak(assembly: str, instruction: str, core: Core, mca: str) -> float:
    """Multiplications per cycle of the innermost loop that has most of them, of the peak."""
    loops = innermost_loops(assembly)
    loop = max(loops, key=lambda candidate: multiplications(candidate, instruction))
    done = multiplications(loop, instruction)
    assert done, f"no loop multiplies by {instruction}"
    return done / cycles(loop, core, mca) / core.peak(instruction)
