"""Seeded damage to files, for fuzzing."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

_PER_FILE = (1, 1, 1, 2, 4)
_EDGE_INT32 = (0, 1, -1, 2, 4, 7, 127, 255, 65535, 0x7FFFFFFF, -0x80000000, 0x40000000)


def mutated(seeds: Sequence[bytes], number: int) -> bytes:
    """A damaged copy of one of the seeds.

    `number`: which one; the same number always gives the same bytes for the same seeds.
    """
    rng = random.Random(number)
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice(_PER_FILE)):
        rng.choice(_MUTATIONS)(data, rng, seeds)
    return bytes(data)


def _flip_bit(data: bytearray, rng: random.Random, seeds: Sequence[bytes]) -> None:
    """Flip one bit."""
    if data:
        data[_position(data, rng)] ^= 1 << rng.randrange(8)


def _overwrite_byte(data: bytearray, rng: random.Random, seeds: Sequence[bytes]) -> None:
    """Overwrite one byte, often with a value at the edge of its range."""
    if data:
        data[_position(data, rng)] = rng.choice((0, 0xFF, 0x7F, 0x80, 1, rng.randrange(256)))


def _negate_int32(data: bytearray, rng: random.Random, seeds: Sequence[bytes]) -> None:
    """Change the sign of an aligned int32."""
    start = _aligned(data, rng)
    value = int.from_bytes(data[start : start + 4], "little", signed=True)
    _put_int32(data, start, -value)


def _nudge_int32(data: bytearray, rng: random.Random, seeds: Sequence[bytes]) -> None:
    """Change an aligned int32 by a little."""
    start = _aligned(data, rng)
    value = int.from_bytes(data[start : start + 4], "little", signed=True)
    _put_int32(data, start, value + rng.choice((-8, -4, -1, 1, 4, 8)))


def _overwrite_int32(data: bytearray, rng: random.Random, seeds: Sequence[bytes]) -> None:
    """Overwrite an aligned int32 with a value at the edge of some range, or the file's size."""
    _put_int32(data, _aligned(data, rng), rng.choice((*_EDGE_INT32, len(data), len(data) - 4)))


def _overwrite_run(data: bytearray, rng: random.Random, seeds: Sequence[bytes]) -> None:
    """Overwrite some bytes with all zeros, all ones or noise."""
    if data:
        start = _position(data, rng)
        count = min(rng.randint(1, 32), len(data) - start)
        fill = rng.choice((b"\0" * count, b"\xff" * count, rng.randbytes(count)))
        data[start : start + count] = fill


def _truncate(data: bytearray, rng: random.Random, seeds: Sequence[bytes]) -> None:
    """Cut off the end."""
    if data and rng.random() < 0.3:
        del data[_position(data, rng) :]


def _copy_part(data: bytearray, rng: random.Random, seeds: Sequence[bytes]) -> None:
    """Copy a part of a file, this one or another, over another place."""
    source = rng.choice((bytes(data), rng.choice(seeds)))
    start, target = _aligned(source, rng), _aligned(data, rng)
    part = source[start : start + rng.choice((4, 8, 16, 64, 256))]
    data[target : target + len(part)] = part[: len(data) - target]


def _insert(data: bytearray, rng: random.Random, seeds: Sequence[bytes]) -> None:
    """Insert some bytes, so that everything after them moves."""
    start = _aligned(data, rng)
    data[start:start] = rng.randbytes(rng.choice((1, 4, 16, 64)))


def _delete(data: bytearray, rng: random.Random, seeds: Sequence[bytes]) -> None:
    """Delete some bytes, so that everything after them moves."""
    start = _aligned(data, rng)
    del data[start : start + rng.choice((1, 4, 16, 64))]


_MUTATIONS: tuple[Callable[[bytearray, random.Random, Sequence[bytes]], None], ...] = (
    _flip_bit,
    _flip_bit,
    _overwrite_byte,
    _overwrite_byte,
    _negate_int32,
    _nudge_int32,
    _overwrite_int32,
    _overwrite_int32,
    _overwrite_run,
    _truncate,
    _copy_part,
    _copy_part,
    _insert,
    _delete,
)


def _position(data: bytes | bytearray, rng: random.Random) -> int:
    """A position, more often near the end, where files tend to keep data other than weights."""
    return int(len(data) * rng.random() ** rng.choice((1.0, 0.2)))


def _aligned(data: bytes | bytearray, rng: random.Random) -> int:
    """A position that is a multiple of 4."""
    return _position(data, rng) // 4 * 4 if data else 0


def _put_int32(data: bytearray, start: int, value: int) -> None:
    """Write an int32 over the present bytes, as far as the file goes."""
    stored = (value & 0xFFFFFFFF).to_bytes(4, "little")
    data[start : start + 4] = stored[: len(data) - start]
