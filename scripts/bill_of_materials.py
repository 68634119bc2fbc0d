"""Adds a bill of materials to built wheels: `python scripts/bill_of_materials.py WHEEL ...`.

The bill is CycloneDX (JSON) in the folder ``sboms`` of the wheel's ``.dist-info`` (PEP 770). It
lists the files that are no text, with their digests, and what the wheel needs. Nothing in it
depends on when or where it is made: the same wheel gets the same bill. setuptools has no setting
for such files, so they are added once a wheel is built.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

Json: TypeAlias = dict[str, Any]  # Any: a JSON document

BINARY = {
    ".kernels": "machine code that NumbaAcc's sources in this wheel are compiled to",
    ".png": "a picture that examples/digits/draw.py draws",
    ".tflite": "a small model that examples/digits/train.py trains",
}
"""Endings of files that are not what people have written, with what they are."""
_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The time of added files in wheels, the first that zip files can state."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Add a bill to each wheel that is named."""
    for name in sys.argv[1:] if arguments is None else arguments:
        print(f"{name}: {add_bill(Path(name))}")
    return 0


def add_bill(wheel: Path) -> str:
    """Write a wheel anew with its bill of materials; return the bill's name in the wheel."""
    with zipfile.ZipFile(wheel) as file:
        contents = {info.filename: file.read(info) for info in file.infolist()}
        infos = {info.filename: info for info in file.infolist()}
    folder = dist_info(contents)
    metadata = Metadata.from_email(contents[f"{folder}/METADATA"])
    name = bill_name(folder, metadata)
    contents[name] = json.dumps(bill_of(metadata, contents), indent=1).encode() + b"\n"
    infos.setdefault(name, zipfile.ZipInfo(name, _EARLIEST)).compress_type = zipfile.ZIP_DEFLATED
    record = f"{folder}/RECORD"
    lines = [
        line
        for line in contents[record].decode().splitlines()
        if not line.startswith((f"{name},", f"{record},"))
    ]
    contents[record] = "\n".join(
        [*lines, recorded(name, contents[name]), f"{record},,", ""]
    ).encode()
    unfinished = wheel.with_suffix(".unfinished")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as file:
        for entry in sorted(contents, key=lambda entry: (entry == record, entry)):
            file.writestr(infos[entry], contents[entry])
    unfinished.replace(wheel)
    return name


def dist_info(names: Mapping[str, bytes]) -> str:
    """The name of a wheel's folder with metadata."""
    (folder,) = {name.partition("/")[0] for name in names if ".dist-info/" in name}
    return folder


def bill_name(folder: str, metadata: Metadata) -> str:
    """The name of a wheel's bill, in its folder with metadata."""
    return f"{folder}/sboms/{canonicalize_name(metadata.name)}.cdx.json"


def recorded(name: str, contents: bytes) -> str:
    """The line of a file in a wheel's RECORD."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(contents)}"


def bill_of(metadata: Metadata, contents: Mapping[str, bytes]) -> Json:
    """The bill of materials of a wheel.

    Parameters
    ----------
    metadata
        What the wheel states of itself.
    contents
        Bytes of each file, by name.
    """
    own = canonicalize_name(metadata.name)
    purl = f"pkg:pypi/{own}@{metadata.version}"
    needed = [*needed_packages(metadata)]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "library",
                "bom-ref": purl,
                "name": own,
                "version": str(metadata.version),
                "description": metadata.summary,
                "licenses": [{"expression": metadata.license_expression}],
                "purl": purl,
                "components": [*binary_files(contents)],
            },
        },
        "components": needed,
        "dependencies": [
            {"ref": purl, "dependsOn": [package["bom-ref"] for package in needed]},
        ],
        # What is in the wheel is all here; what the needed packages need is not.
        "compositions": [
            {"aggregate": "complete", "assemblies": [purl]},
            {"aggregate": "incomplete_first_party_only", "dependencies": [purl]},
        ],
    }


def binary_files(contents: Mapping[str, bytes]) -> Iterator[Json]:
    """The wheel's files that are not what people have written."""
    for name in sorted(contents):
        if (ending := Path(name).suffix) in BINARY:
            yield {
                "type": "file",
                "bom-ref": name,
                "name": name,
                "description": BINARY[ending],
                "hashes": [
                    {"alg": "SHA-256", "content": hashlib.sha256(contents[name]).hexdigest()}
                ],
            }


def needed_packages(metadata: Metadata) -> Iterator[Json]:
    """What a wheel needs: always, or for one of its extras."""
    by_name: dict[str, list[Requirement]] = {}
    for requirement in metadata.requires_dist or ():
        by_name.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    for name, requirements in sorted(by_name.items()):
        if name == canonicalize_name(metadata.name):
            continue  # extras that take others in
        is_needed = any(requirement.marker is None for requirement in requirements)
        yield {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}",
            "name": name,
            "scope": "required" if is_needed else "optional",
            "purl": f"pkg:pypi/{name}",
            "properties": [
                {"name": "armpy:requirement", "value": str(requirement)}
                for requirement in requirements
            ],
        }


if __name__ == "__main__":
    raise SystemExit(main())
