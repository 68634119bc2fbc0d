"""Checks what is in wheels: `python lab/wheel_contents.py WHEEL ...`.

A wheel has valid metadata, its licence and its notice, the mark of types in each package, and no
other files but those of packages.
"""

from __future__ import annotations

import argparse
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from packaging.metadata import Metadata
from packaging.utils import canonicalize_name, parse_wheel_filename

LICENSES = ("LICENSE", "NOTICE")

BINARY = (".kernels", ".png", ".tflite")
"""Endings of files that are not text: NumbaAcc's compiled kernels, pictures, small models."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the problems of each wheel that is named; 1 if there are any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL")
    wheels = parser.parse_args(arguments).wheels
    problems = [f"{wheel}: {problem}" for wheel in wheels for problem in problems_in(wheel)]
    print(*problems, *([] if problems else [f"{len(wheels)} wheels are sound"]), sep="\n")
    return 1 if problems else 0


def problems_in(wheel: Path) -> list[str]:
    """What is wrong with a wheel."""
    with zipfile.ZipFile(wheel) as file:
        contents = {info.filename: file.read(info) for info in file.infolist()}
    (folder,) = {name.partition("/")[0] for name in contents if ".dist-info/" in name}
    try:
        metadata = Metadata.from_email(contents[f"{folder}/METADATA"])
    except ExceptionGroup as errors:
        return [f"METADATA: {error}" for error in errors.exceptions]
    return [
        *wrong_metadata(metadata, wheel.name, contents[f"{folder}/WHEEL"].decode()),
        *missing_licenses(metadata, contents, folder),
        *wrong_files(contents, folder),
    ]


def wrong_metadata(metadata: Metadata, name: str, wheel: str) -> Iterator[str]:
    """Metadata that are not those of the file's name, or that a package's page needs."""
    stated, version, _, tags = parse_wheel_filename(name)
    if (canonicalize_name(metadata.name), metadata.version) != (stated, version):
        yield f"METADATA is of {metadata.name} {metadata.version}. Expected {stated} {version}."
    if {str(tag) for tag in tags} != {"py3-none-any"} or "Root-Is-Purelib: true" not in wheel:
        yield "the wheel is not for every system. Expected py3-none-any."
    for field in ("summary", "description", "description_content_type", "requires_python"):
        if not getattr(metadata, field):
            yield f"METADATA has no {field}."


def missing_licenses(
    metadata: Metadata, contents: Mapping[str, bytes], folder: str
) -> Iterator[str]:
    """Licences and notices that the metadata do not state, or the wheel does not have."""
    if metadata.license_expression != "Apache-2.0":
        yield f"the licence is {metadata.license_expression}. Expected Apache-2.0."
    for name in LICENSES:
        if name not in (metadata.license_files or ()):
            yield f"METADATA has no line 'License-File: {name}'."
        if not contents.get(f"{folder}/licenses/{name}"):
            yield f"{folder}/licenses/{name} is missing."


def wrong_files(contents: Mapping[str, bytes], folder: str) -> Iterator[str]:
    """Files that belong into no wheel, and packages without the mark of types."""
    for name, data in contents.items():
        if b"\0" in data and Path(name).suffix not in BINARY:
            yield f"{name} is not text. Expected no such file but {', '.join(BINARY)}."
        if re.search(r"(^|/)(tests|__pycache__|build|\.\w[^/]*)/|\.py[co]$|\.egg-info", name):
            yield f"{name} does not belong into a wheel."
    packages = {name.partition("/")[0] for name in contents if not name.startswith(f"{folder}/")}
    for package in sorted(packages):
        if f"{package}/py.typed" not in contents:
            yield f"{package} has no py.typed."


if __name__ == "__main__":
    raise SystemExit(main())
