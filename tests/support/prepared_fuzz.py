"""Damage to compiled models with knowledge of the layout, for fuzzing."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from armpy_testing.models.mutations import mutated
from tests.support.prepared_layouts import document, newest_layout, read_document, read_plainly

ODD: tuple[object, ...] = (
    *(None, True, 0, -1, 1, 2, 7, 63, 2**31, 2**32, 2**63, 2**64, 10**30, 1.5, 1e300),
    *(
        "",
        "x",
        "host",
        "model",
        "constants",
        "programs/0/code",
        "../../etc/passwd",
        "\0",
        "é" * 300,
    ),
    *([], [0], [[]], {}, {"a": 1}, [1] * 100, "NONE"),
)
HEADER_FIELDS = ((0, 8), (8, 12), (12, 16), (16, 24), (24, 32), (32, 64), (64, 96), (96, 160))
RESERVED = (160, 256)
TRUSTED, NEVER = "trusted", "never"


class Mutation(NamedTuple):
    """A damaged file, and how it is to be loaded."""

    contents: bytes
    seed: int  # number of the sound file that it is a copy of
    # Files whose manifest has a right checksum again, and which say other things about programs,
    # are as dangerous as code: they are loaded as another user's
    code: str
    is_same_graph: bool  # whether it still has to give the right result if it gives any


Make = Callable[[random.Random, Sequence[bytes]], Mutation]


def mutation(seeds: Sequence[bytes], number: int) -> tuple[str, Mutation]:
    """The mutation of a number, and its kind; the same number gives the same."""
    chance = random.Random(number)
    name = chance.choice(list(KINDS))
    return name, KINDS[name](chance, seeds)


def _any_bytes(chance: random.Random, seeds: Sequence[bytes]) -> Mutation:
    """Bytes anywhere."""
    seed = chance.randrange(len(seeds))
    contents = mutated([seeds[seed]], chance.randrange(1 << 40))
    return Mutation(contents, seed, TRUSTED, True)


def _header(chance: random.Random, seeds: Sequence[bytes]) -> Mutation:
    """A field of the header."""
    seed = chance.randrange(len(seeds))
    contents = bytearray(seeds[seed])
    begin, end = chance.choice((*HEADER_FIELDS, RESERVED))
    count = end - begin
    number = int.from_bytes(contents[begin:end], "little")
    odd = (0, 1, number + 1, number - 1, number * 2, 1 << 26, 1 << 63, (1 << 8 * count) - 1)
    values = [value % (1 << 8 * count) for value in odd] + [chance.getrandbits(8 * count)]
    contents[begin:end] = chance.choice(values).to_bytes(count, "little")
    return Mutation(bytes(contents), seed, TRUSTED, True)


def _signer(chance: random.Random, seeds: Sequence[bytes]) -> Mutation:
    """The key and signature of another file, or noise."""
    seed = chance.randrange(len(seeds))
    contents = bytearray(seeds[seed])
    other = chance.choice(seeds)
    for part in chance.choice(
        ((slice(64, 96),), (slice(96, 160),), (slice(64, 96), slice(96, 160)))
    ):
        noise = chance.randbytes(part.stop - part.start)
        contents[part] = chance.choice((noise, other[part], bytes(len(noise))))
    return Mutation(bytes(contents), seed, TRUSTED, True)


def _sections(chance: random.Random, seeds: Sequence[bytes]) -> Mutation:
    """Contents of sections swapped, cut, or taken from another file; nothing is sealed again."""
    seed = chance.randrange(len(seeds))
    contents = bytearray(seeds[seed])
    rows = read_plainly(seeds[seed]).manifest["sections"]
    donor = chance.choice(seeds)
    donor_rows = read_plainly(donor).manifest["sections"]
    _, begin, size, _ = chance.choice(rows)
    _, from_begin, from_size, _ = chance.choice(donor_rows)
    change = chance.randrange(4)
    if change == 0:  # another section's
        part = donor[from_begin : from_begin + from_size][:size]
        contents[begin : begin + len(part)] = part
    elif change == 1:  # the file ends in it
        del contents[begin + chance.randint(0, size) :]
    elif change == 2:  # a part of it is missing, and what follows moves
        place = begin + chance.randint(0, size)
        del contents[place : place + chance.choice((1, 64, 4096))]
    else:  # the end of another file
        contents[begin:] = donor[from_begin:]
    if chance.random() < 0.5:  # a size that fits again
        contents[24:32] = len(contents).to_bytes(8, "little")
    return Mutation(bytes(contents), seed, TRUSTED, True)


def _head(chance: random.Random, seeds: Sequence[bytes]) -> Mutation:
    """The header, the manifest, or both, of another file."""
    seed = chance.randrange(len(seeds))
    first, other = seeds[seed], chance.choice(seeds)
    begin, end = chance.choice(((0, 64), (0, 256), (256, -1), (0, -1), (32, 64)))
    if end == -1:
        end = 256 + int.from_bytes(other[16:24], "little")
    contents = bytearray(first)
    contents[begin:end] = other[begin:end]
    if chance.random() < 0.5:
        contents[24:32] = len(contents).to_bytes(8, "little")
    return Mutation(bytes(contents), seed, TRUSTED, True)


def _harmless_fields(chance: random.Random, seeds: Sequence[bytes]) -> Mutation:
    """What a sealed manifest says besides programs."""
    seed = chance.randrange(len(seeds))
    plain = read_plainly(seeds[seed])
    manifest = {name: value for name, value in plain.manifest.items() if name != "sections"}
    part = {n: v for n, v in manifest.items() if n not in ("programs", "quick")}
    manifest |= changed(part, chance)
    contents = newest_layout(plain.sections, manifest)
    return Mutation(contents, seed, TRUSTED, True)


def _foreign(chance: random.Random, seeds: Sequence[bytes]) -> Mutation:
    """Programs for other machines, of other versions, other layers or other backends."""
    seed = chance.randrange(len(seeds))
    plain = read_plainly(seeds[seed])
    manifest = copy.deepcopy(plain.manifest)
    del manifest["sections"]
    for record in manifest["programs"]:
        about = record["about"]
        change = chance.randrange(7)
        if change == 0:
            about["abi"] = chance.choice(ODD)
        elif change == 1:
            about["needs"] = chance.choice((["no such thing"], *ODD[15:]))
        elif change == 2:
            about["isa"][0] = chance.choice(("none", "neon", "i8mm", 5, None))
        elif change == 3:
            record["digest"] = chance.choice(("", "00" * 16, *(d for d in _digests(seeds))))
            record["digest"] += "" if record["digest"] not in _digests([seeds[seed]]) else "0"
        elif change == 4:
            record["backend"] = chance.choice(("None", "CpuRef", "", "é"))
        elif change == 5:
            about["needs"] = [*about["needs"], "sve2"]
        else:
            record["about"] = chance.choice(({}, {"abi": about["abi"]}, {"isa": []}))
    return Mutation(newest_layout(plain.sections, manifest), seed, TRUSTED, True)


def _digests(seeds: Sequence[bytes]) -> list[str]:
    """Digests of all programs of some files."""
    return [r["digest"] for seed in seeds for r in read_plainly(seed).manifest["programs"]]


def _manifest_of_a_stranger(chance: random.Random, seeds: Sequence[bytes]) -> Mutation:
    """Anything in a sealed manifest."""
    seed = chance.randrange(len(seeds))
    plain = read_plainly(seeds[seed])
    manifest = {name: value for name, value in plain.manifest.items() if name != "sections"}
    return Mutation(newest_layout(plain.sections, changed(manifest, chance)), seed, NEVER, True)


def _table_of_a_stranger(chance: random.Random, seeds: Sequence[bytes]) -> Mutation:
    """Anything in the table of sections, in a sealed manifest."""
    seed = chance.randrange(len(seeds))
    contents = bytearray(seeds[seed])
    plain = read_plainly(seeds[seed])
    manifest = changed({"sections": plain.manifest["sections"]}, chance)
    text = json.dumps({**plain.manifest, **manifest}, separators=(",", ":")).encode()
    room = len(plain.manifest_text)
    if len(text) <= room:
        contents[256 : 256 + room] = text.ljust(room)
        contents[32:64] = sha256(text.ljust(room)).digest()
    return Mutation(bytes(contents), seed, NEVER, False)


def _graph_of_a_stranger(chance: random.Random, seeds: Sequence[bytes]) -> Mutation:
    """Anything in the record of a network, sealed."""
    seed = chance.randrange(len(seeds))
    plain = read_plainly(seeds[seed])
    manifest = {name: value for name, value in plain.manifest.items() if name != "sections"}
    name = chance.choice([n for n in plain.sections if n.startswith("model") or n == "metadata"])
    record = changed(read_document(plain.sections[name]), chance)
    sections = plain.sections | {name: document(record)}
    return Mutation(newest_layout(sections, manifest), seed, NEVER, name == "metadata")


KINDS: dict[str, Make] = {
    "any bytes": _any_bytes,
    "header": _header,
    "signer": _signer,
    "sections": _sections,
    "head": _head,
    "harmless fields": _harmless_fields,
    "foreign": _foreign,
    "manifest of a stranger": _manifest_of_a_stranger,
    "table of a stranger": _table_of_a_stranger,
    "graph of a stranger": _graph_of_a_stranger,
}


def changed(record: Any, chance: random.Random) -> Any:  # Any: whatever JSON holds
    """A copy of a record with a few places changed."""
    record = copy.deepcopy(record)
    for _ in range(chance.choice((1, 1, 2, 3))):
        if not record:
            return record
        holder, key = record, chance.choice(list(record))
        while isinstance(holder[key], dict | list) and holder[key] and chance.random() < 0.9:
            holder = holder[key]
            key = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        change = chance.random()
        if change < 0.6:
            holder[key] = copy.deepcopy(chance.choice(ODD))
        elif change < 0.8:
            del holder[key]
        else:
            others = list(holder) if isinstance(holder, dict) else range(len(holder))
            holder[key] = copy.deepcopy(holder[chance.choice(others)])
    return record
