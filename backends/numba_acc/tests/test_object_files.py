"""Object files are linked on any machine, and refused if they are damaged; none of them is run."""

from __future__ import annotations

import os
import random
import struct

import pytest
from armpy_numba_acc.ahead import target
from armpy_numba_acc.llvm.build import build_kernel
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.native import elf, image
from armpy_numba_acc.native.object_file import ObjectFile
from armpy_numba_acc.native.relocations import relocate

KERNELS = (Kernel("copy"), Kernel("reduce", ("sum", "f32", "columns")), Kernel("executor"))
TARGETS = ("x86-64-v3", "cortex-a72")
NUM_MUTATIONS = int(os.environ.get("ARMPY_NUM_MUTATIONS", "4000"))


@pytest.fixture(scope="module", params=TARGETS)
def objects(request: pytest.FixtureRequest) -> dict[str, bytes]:
    isa = target(request.param).isa
    return {kernel.symbol: build_kernel(kernel, isa) for kernel in KERNELS}


def mutated(data: bytes, rng: random.Random) -> bytes:
    """An object with some damage, of which half is in its tables."""
    result = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        (tables,) = struct.unpack_from("<Q", data, 40)
        places = range(len(result)), range(64), range(min(tables, len(result) - 1), len(result))
        place = rng.choice(rng.choice(places))
        if place >= len(result):
            continue
        kind, size = rng.randrange(5), rng.choice((1, 2, 4, 8))
        if kind == 0:
            result[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            largest = (1 << 8 * size) - 1
            number = rng.choice((0, largest, largest // 2 + 1, rng.getrandbits(8 * size)))
            result[place : place + size] = number.to_bytes(size, "little")
        elif kind == 2:
            result[place : place + size] = rng.randrange(256).to_bytes(size, "little")
        elif kind == 3:
            start = rng.randrange(len(result))
            result[place : place + 64] = result[start : start + 64]
        elif rng.random() < 0.2:
            del result[rng.randrange(128, max(len(result), 129)) :]
    return bytes(result)


@pytest.mark.slow
def test_damaged_objects_are_refused_or_linked_within_bounds(objects: dict[str, bytes]) -> None:
    rng = random.Random(20)
    refused = 0
    for _ in range(NUM_MUTATIONS):
        name, data = rng.choice([*objects.items()])
        damaged = mutated(data, rng)
        try:
            linked = elf.link({name: damaged})
        except elf.UnsupportedError:
            refused += 1
            continue
        assert len(linked.code) <= elf._MOST_BYTES
        assert 0 <= linked.functions[name] < len(linked.code)
        assert all(place + 16 <= len(linked.code) for place in linked.jumps.values())
    assert NUM_MUTATIONS // 4 < refused < NUM_MUTATIONS


@pytest.mark.slow
def test_every_cut_through_an_object_is_refused(objects: dict[str, bytes]) -> None:
    for size in range(0, len(objects["copy"]), 7):
        with pytest.raises(elf.UnsupportedError):
            elf.link({"copy": objects["copy"][:size]})


def patched(data: bytes, section: int, field: int, value: int) -> bytes:
    """An object of which one number of one section's description is another."""
    (start,) = struct.unpack_from("<Q", data, 40)
    offset = start + 64 * section + (0, 4, 8, 16, 24, 32, 40, 44, 48, 56)[field]
    form = "<I" if field in (0, 1, 6, 7) else "<Q"
    return data[:offset] + struct.pack(form, value) + data[offset + struct.calcsize(form) :]


def section_of(data: bytes, kind: int) -> int:
    """The first section of a kind that is not empty."""
    sections = ObjectFile(data).sections
    return next(n for n, section in enumerate(sections) if section.kind == kind and section.size)


CODE, SYMBOLS, NAMES, REFERENCES = 1, 2, 3, 4
KIND, FLAGS, OFFSET, SIZE, LINK, ALIGNMENT, ENTRY_SIZE = 1, 2, 4, 5, 6, 8, 9


@pytest.mark.parametrize(
    ("kind", "field", "value", "reason"),
    [
        (CODE, FLAGS, 7, "it has variables"),
        (CODE, FLAGS, 2, "'copy' is not a function"),
        (CODE, OFFSET, 1 << 63, "a section reaches beyond the file"),
        (CODE, SIZE, 1 << 60, "a section is larger than kernels are"),
        (CODE, SIZE, 1 << 20, "a section reaches beyond the file"),
        (CODE, ALIGNMENT, 3, "aligned to what no memory is"),
        (CODE, ALIGNMENT, 1 << 40, "aligned to what no memory is"),
        (SYMBOLS, KIND, 9, "it has no table of symbols"),
        (SYMBOLS, LINK, 999, "names that are not there"),
        (SYMBOLS, ENTRY_SIZE, 16, "entries of another size"),
        (SYMBOLS, SIZE, 25, "entries of another size"),
        (NAMES, SIZE, 0, "a name is damaged"),
    ],
)
def test_a_misfit_is_reported(
    objects: dict[str, bytes], kind: int, field: int, value: int, reason: str
) -> None:
    data = objects["copy"]
    damaged = patched(data, section_of(data, kind), field, value)
    with pytest.raises(elf.UnsupportedError, match=reason):
        elf.link({"copy": damaged})


@pytest.mark.parametrize(
    ("place", "number", "reason"),
    [(0, 1 << 40, "outside of its section"), (12, 1 << 20, "outside of its section")],
    ids=["place", "symbol"],
)
def test_references_lie_within_bounds(
    objects: dict[str, bytes], place: int, number: int, reason: str
) -> None:
    name = "reduce_sum_f32_columns"
    data = objects[name]
    read = ObjectFile(data)
    read.place(0)
    table = next(s for s in read.sections if s.kind == REFERENCES and s.info in read.places)
    form = "<Q" if place == 0 else "<I"
    damaged = bytearray(data)
    struct.pack_into(form, damaged, table.offset + place, number)
    with pytest.raises(elf.UnsupportedError, match=reason):
        elf.link({name: bytes(damaged)})


def test_objects_of_two_architectures_are_not_joined() -> None:
    codes = {
        f"copy{number}": build_kernel(Kernel("copy"), target(name).isa)
        for number, name in enumerate(TARGETS)
    }
    with pytest.raises(elf.UnsupportedError, match="several architectures"):
        elf.link(codes)


def test_code_of_another_architecture_is_linked_and_never_mapped() -> None:
    other = "cortex-a72" if image.own_architecture() == "x86_64" else "x86-64-v3"
    linked = elf.link({"copy": build_kernel(Kernel("copy"), target(other).isa)})
    with pytest.raises(elf.UnsupportedError, match=f"code for {linked.architecture}"):
        elf.load_image(linked)


@pytest.mark.skipif(not elf.can_load(), reason="nothing is loaded here")
def test_images_that_lead_out_of_themselves_are_not_mapped() -> None:
    good = elf.Image(bytes(64), {"f": 0}, {"memset": 48}, image.own_architecture())
    for bad in (
        good._replace(jumps={"memset": 49}),
        good._replace(jumps={"memset": -16}),
        good._replace(functions={"f": 64}),
        good._replace(functions={"f": -1}),
    ):
        with pytest.raises(elf.UnsupportedError, match="outside of the code"):
            elf.load_image(bad)


@pytest.mark.parametrize(
    ("kind", "before", "place", "to", "after"),
    [
        # Encodings as the Arm Architecture Reference Manual has them.
        (283, 0x94000000, 0x100, 0x108, 0x94000002),  # bl . + 8
        (283, 0x94000000, 0x108, 0x100, 0x97FFFFFE),  # bl . - 8
        (282, 0x14000000, 0x0, 0x7FFFFFC, 0x15FFFFFF),  # b, as far as it goes
        (275, 0x90000000, 0x1FFC, 0x2000, 0xB0000000),  # adrp x0, the next page
        (275, 0x90000003, 0x5000, 0x0FFF, 0xF0FFFFC3),  # adrp x3, five pages back
        (275, 0x90000001, 0x0, 0x5010, 0xB0000021),  # adrp x1, five pages on
        (274, 0x10000000, 0x10, 0x17, 0x70000020),  # adr x0, . + 7
        (277, 0x91000000, 0x0, 0x1ABC, 0x912AF000),  # add x0, x0, 0xabc
        (286, 0xF9400000, 0x0, 0x3010, 0xF9400800),  # ldr x0, [x0, 16]
        (299, 0x3DC00000, 0x0, 0x20, 0x3DC00800),  # ldr q0, [x0, 32]
        (285, 0xBD400000, 0x0, 0x1FFC, 0xBD4FFC00),  # ldr s0, [x0, 0xffc]
        (284, 0x79400000, 0x0, 0x2, 0x79400400),  # ldrh w0, [x0, 2]
        (278, 0x39400000, 0x0, 0x3, 0x39400C00),  # ldrb w0, [x0, 3]
    ],
)
def test_arms_instructions_get_their_distances(
    kind: int, before: int, place: int, to: int, after: int
) -> None:
    code = bytearray(place + 8)
    struct.pack_into("<I", code, place, before)
    relocate(code, "aarch64", kind, place, to, 4)
    assert hex(struct.unpack_from("<I", code, place)[0]) == hex(after)
    # What was there before is overwritten.
    relocate(code, "aarch64", kind, place, to, 4)
    assert struct.unpack_from("<I", code, place)[0] == after


@pytest.mark.parametrize(
    ("kind", "before", "place", "to", "reason"),
    [
        (283, 0x94000000, 0, 0x8000000, "does not fit its instruction"),
        (283, 0x94000000, 0, 2, "does not fit its instruction"),
        (275, 0x90000000, 0, 1 << 32, "does not fit its instruction"),
        (299, 0x3DC00000, 0, 8, "not aligned"),
        (283, 0x91000000, 0, 4, "not lie in an instruction of its kind"),
        (277, 0x3DC00000, 0, 4, "not lie in an instruction of its kind"),
        (283, 0x94000000, 2, 6, "not lie in an instruction of its kind"),
        (257, 0, 0, 4, "of kind 257"),
        (261, 0, 0, 1 << 31, "does not fit its place"),
    ],
)
def test_distances_that_cannot_be_put_are_refused(
    kind: int, before: int, place: int, to: int, reason: str
) -> None:
    code = bytearray(16)
    struct.pack_into("<I", code, place, before)
    with pytest.raises(elf.UnsupportedError, match=reason):
        relocate(code, "aarch64", kind, place, to, 4)


@pytest.mark.parametrize(("architecture", "kind"), [("aarch64", 283), ("x86_64", 2)])
def test_nothing_is_written_beyond_a_section(architecture: str, kind: int) -> None:
    code = bytearray(b"\0\0\0\x94" * 4)
    with pytest.raises(elf.UnsupportedError, match="reaches beyond its section"):
        relocate(code, architecture, kind, 4, 8, 3)
    assert code == b"\0\0\0\x94" * 4


def test_distances_between_data_count_from_their_place() -> None:
    code = bytearray(16)
    relocate(code, "aarch64", 261, 4, 0, 4)
    relocate(code, "aarch64", 260, 8, 24, 8)
    assert struct.unpack("<iiq", code) == (0, -4, 16)
