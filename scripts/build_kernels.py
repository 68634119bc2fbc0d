"""Builds the distribution armpy-kernels: kernels of common networks, compiled for named targets.

Usage::

    python scripts/build_kernels.py MODEL... -o DIR [--architecture NAME] [--targets NAME,...]

A wheel of data for one architecture, as `armpy[kernels]` installs it: the package ``armpy_kernels``
with a kernel pack (`armpy kernels build`) for each target. It fits the armpy of this very tree and
no other. The models decide which kernels are in it; which ones they were is listed in the wheel.
Needs the package ``build`` and what builds wheels, from a package index.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import armpy

TARGETS = {
    "x86_64": ("x86-64-v3", "icelake-server", "znver4", "sapphirerapids"),
    "aarch64": ("cortex-a76", "neoverse-n1", "neoverse-v1", "neoverse-v2"),
}
"""By architecture: processors with AVX2, AVX-512 with VNNI, bfloat16 and AMX; and Arm's."""

LARGEST_BYTES = 30 << 20
"""Of a wheel."""

_PROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "armpy-kernels"
version = "{version}"
description = "Compiled kernels of common networks for armpy"
license = "Apache-2.0"
requires-python = ">=3.11"
dependencies = ["armpy=={version}"]

[tool.setuptools]
packages = ["armpy_kernels"]

[tool.setuptools.package-data]
armpy_kernels = ["*.kernels", "models.txt"]
"""

_MODULE = '"""Kernel packs that armpy looks into before it compiles; see `armpy kernels list`."""\n'


def main(arguments: Sequence[str] | None = None) -> int:
    """Build a wheel; 1 if it is too large, or a model could not be loaded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    parser.add_argument("--architecture", choices=TARGETS, default="x86_64")
    parser.add_argument("--targets", metavar="NAME,...", help="other ones than usual")
    options = parser.parse_args(arguments)
    targets = (options.targets or ",".join(TARGETS[options.architecture])).split(",")
    with tempfile.TemporaryDirectory() as folder:
        wheel, is_whole = build(
            options.models, targets, options.architecture, Path(folder), options.output
        )
    size = wheel.stat().st_size
    print(f"built {wheel}, {size:,} bytes")
    if size > LARGEST_BYTES:
        print(f"it is too large: expected at most {LARGEST_BYTES:,} bytes")
    return 0 if is_whole and size <= LARGEST_BYTES else 1


def build(
    models: Sequence[str], targets: Sequence[str], architecture: str, project: Path, output: Path
) -> tuple[Path, bool]:
    """Build the wheel; its path, and whether it has the kernels of all models."""
    package = project / "armpy_kernels"
    package.mkdir()
    (package / "__init__.py").write_text(_MODULE)
    (package / "models.txt").write_text("".join(f"{Path(model).name}\n" for model in models))
    (project / "pyproject.toml").write_text(_PROJECT.format(version=armpy.__version__))
    command = [sys.executable, "-m", "armpy", "kernels", "build", *models, "-o", os.fspath(package)]
    for target in targets:
        command += ["--target", target]
    built = subprocess.run(command, check=False).returncode
    if not list(package.glob("*.kernels")):
        raise SystemExit("no pack was built")
    tag = f"--plat-name=manylinux2014_{architecture}"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            f"-C--build-option={tag}",
            "-o",
            output,
            project,
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    name = f"armpy_kernels-{armpy.__version__}-*{architecture}.whl"
    return next(iter(sorted(output.glob(name)))), not built


if __name__ == "__main__":
    sys.exit(main())
