"""Runs armpy on an emulated 64-bit Arm processor.

Usage::

    python lab/emulate_arm.py setup
    python lab/emulate_arm.py python [--processor NAME] ARGUMENTS...
    python lab/emulate_arm.py pytest [--isa NAMES] ARGUMENTS...
    python lab/emulate_arm.py nightly [--isa NAMES] ARGUMENTS...
    python lab/emulate_arm.py vectors [--isa NAMES] [--every N] [--first N] DIRECTORY

``setup`` makes the environment, once: Debian's Python for arm64 and wheels for it, about 250 MB in
the folder for caches. The others make it if it is not there. ``python`` runs its interpreter, with
this checkout's packages: everything is emulated, and slow. The others emulate compiled kernels
only, and what calls them; the rest of armpy runs as ever, as if the processor had the
instruction sets NAMES: one of ``i8mm``, ``neon``, ``neon-basic`` and ``portable``, or several with
commas between them; all if left out.

``pytest`` runs tests so: those of NumbaAcc, which are made for every instruction set, or
``tests/model/test_golden.py -k NumbaAcc``. ``ARMPY_TEST_EFFORT=3`` runs all of it, for more than
two instruction sets as well; a larger number compares as many more random networks.
``nightly`` runs, for one instruction set after the other, all real models of the folders ``micro``,
``mlperf_tiny`` and ``coral`` against the outputs of TFLite's kernels, and a network for each family
of kernels against CpuRef's. ARGUMENTS are pytest's: ``-k micro`` and the like choose some.
``vectors`` runs NNAPI's published examples, every N-th one, from the given one on.

Needs ``qemu-aarch64`` and, for ``setup``, Debian with root's rights and a network. What is missing
is said, with exit status 77.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence

from emulation.environment import (
    PROCESSORS,
    ROOT,
    MissingError,
    default_environment,
    set_up,
)

MISSING = 77
"""None of pytest's own exit statuses."""

ISAS = "i8mm,neon,neon-basic,portable"

NIGHTLY = ("backends/numba_acc/tests/test_families.py", "tests/model/test_golden.py")

CHOSEN = "test_families or (NumbaAcc and (micro or mlperf_tiny or coral))"
"""Of these; the other folders' real models are too large for an emulator."""


def main() -> int:
    """Carry out the command line's request; return the exit status."""
    options = _options()
    environment = default_environment()
    try:
        set_up(environment)
        if options.command == "setup":
            print(f"Python for arm64 is in {environment.home}")
            return 0
        if options.command == "python":
            command = environment.command(options.processor, options.arguments)
            return subprocess.run(command, check=False).returncode
        environment.command(PROCESSORS[0], [])  # names the missing part
    except MissingError as error:
        print(f"Arm cannot be emulated here: {error}", file=sys.stderr)
        return MISSING
    if options.command == "pytest":
        return _pytest(options.isa, options.arguments)
    if options.command == "nightly":
        return _nightly(options.isa.split(","), options.arguments)
    return _vectors(options)


def _pytest(isas: str, arguments: Sequence[str]) -> int:
    """Run tests in a process that takes itself for an Arm one."""
    path = os.pathsep.join([str(ROOT / "lab"), *filter(None, [os.environ.get("PYTHONPATH", "")])])
    variables = {**os.environ, "PYTHONPATH": path, "ARMPY_EMULATED_ISAS": isas}
    # By the checkout's settings, or pytest would take those of the tests' project, where their
    # modules have other names than the plugin replaces functions in.
    settings = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)]
    # The emulator's settings hold in this process.
    command = [sys.executable, "-m", "pytest", "-n0", *settings, "-p", "emulation.plugin"]
    command += arguments
    return subprocess.run(command, env=variables, cwd=ROOT, check=False).returncode


def _nightly(isas: Sequence[str], arguments: Sequence[str]) -> int:
    """Run real models and families on one instruction set after the other; 1 if one fails."""
    failed = []
    for isa in isas:
        print(f"== {isa}", flush=True)
        if _pytest(isa, [*NIGHTLY, "-k", CHOSEN, *arguments]):
            failed.append(isa)
    print(f"failed: {', '.join(failed)}" if failed else "all passed")
    return int(bool(failed))


def _vectors(options: argparse.Namespace) -> int:
    """Run NNAPI's examples; 1 if one fails."""
    # Their imports must not have been imported before.
    from emulation.remote import redirect  # noqa: PLC0415

    redirect(default_environment(), options.isa.split(","))
    from emulation.vectors import judged  # noqa: PLC0415

    failures = 0
    for name in options.isa.split(","):
        counts: Counter[str] = Counter()
        for result in judged(options.directory, name, options.first, options.every):
            counts[result.outcome.value] += 1
            if result.outcome.value in ("failed", "crashed"):
                failures += 1
                print(f"{name}: {result.case}: {result.reason}", flush=True)
        print(f"{name}: {', '.join(f'{n} {word}' for word, n in sorted(counts.items()))}")
    return int(failures > 0)


def _options() -> argparse.Namespace:
    """The command line's arguments."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("setup")
    python = commands.add_parser("python")
    python.add_argument("--processor", default=PROCESSORS[0])
    pytest = commands.add_parser("pytest")
    pytest.add_argument("--isa", default=ISAS)
    nightly = commands.add_parser("nightly")
    nightly.add_argument("--isa", default=ISAS)
    vectors = commands.add_parser("vectors")
    vectors.add_argument("--isa", default=ISAS)
    vectors.add_argument("--every", type=int, default=1)
    vectors.add_argument("--first", type=int, default=0)
    vectors.add_argument("directory")
    known, arguments = parser.parse_known_args()
    if arguments and known.command not in ("python", "pytest", "nightly"):
        parser.error(f"unrecognized arguments: {' '.join(arguments)}")
    known.arguments = arguments
    return known


if __name__ == "__main__":
    sys.exit(main())
