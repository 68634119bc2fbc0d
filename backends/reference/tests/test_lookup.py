"""CpuRef's look-ups, orderings and random numbers, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_reference.farm_hash import fingerprint64
from armpy_reference.philox import philox_uniform, philox_words

from armpy.ops import (
    ChannelShuffle,
    HashtableLookup,
    LshProjection,
    LshProjectionType,
    RandomMultinomial,
    TopkV2,
)
from armpy.types import DataType
from armpy_testing.run_operation import check, declared, run_operation, tensor

INTEGERS = DataType.SIGNED32


def test_keys_that_are_not_there_give_stored_zeros() -> None:
    values = tensor([[10, 11], [20, 21], [30, 31]], DataType.QASYMM_U8, 0.5, 7)

    rows, hits = run_operation(
        HashtableLookup(),
        [tensor([5, -1, 9, 2, 10], INTEGERS), tensor([-1, 2, 9], INTEGERS), values],
        [declared(DataType.QASYMM_U8, 0.5, 7)],
    )

    assert rows.tolist() == [[0, 0], [10, 11], [30, 31], [20, 21], [0, 0]]
    assert hits.tolist() == [0, 1, 1, 1, 0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Published examples of BigQuery's FARM_FINGERPRINT.
        ("1footrue", -1541654101129638711),
        ("2applefalse", 2794438866806483259),
        ("3true", -4880158226897771312),
    ],
)
def test_published_fingerprints(text: str, expected: int) -> None:
    assert fingerprint_of(text.encode()) == expected % 2**64


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        # Of the bytes 0, 1, 2, ... by FarmHash's own code.
        (0, 0x9AE16A3B2F90404F),
        (3, 0x94A13D22E9EBA49A),
        (5, 0xB4BFA9E87732C149),
        (8, 0xAD5A13E1E8E93B98),
        (16, 0x0EFD25A0A34156D4),
        (17, 0xBBB6A6F8F20D1F1C),
        (32, 0x1A9D8199972CDF49),
        (33, 0xE8756EC1CB75524E),
        (64, 0xF58504BB53DECC4B),
        (65, 0xC6A3282C3E793DBE),
        (128, 0x1C484C95F0EA5DD3),
        (129, 0xCE8BA3741121083E),
        (300, 0xAA66CE5F3E21DA23),
    ],
)
def test_fingerprints_of_every_kind_of_length(length: int, expected: int) -> None:
    assert fingerprint_of(bytes(i % 256 for i in range(length))) == expected


def fingerprint_of(text: bytes) -> int:
    """The fingerprint of one string."""
    return int(fingerprint64(np.frombuffer(text, np.uint8)[None, :])[0])


# Bits worked out with FarmHash's own code.
SEEDS = tensor([[1.5, -2.0, 0.75], [0.25, 3.0, -1.0]])
ITEMS = tensor([[1, 2], [3, 4], [-5, 6]], INTEGERS)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (LshProjectionType.DENSE, [0, 0, 1, 1, 0, 0]),
        (LshProjectionType.SPARSE_DEPRECATED, [0b001, 0b100]),
        (LshProjectionType.SPARSE, [0b001, 0b100 + 8]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_projections_without_weights(kind: LshProjectionType, expected: list[int]) -> None:
    check(run_operation(LshProjection(kind), [SEEDS, ITEMS])[0], expected)


def test_weights_change_the_projection() -> None:
    weighted = [SEEDS, ITEMS, tensor([1.0, -0.5, 2.0])]

    check(run_operation(LshProjection(LshProjectionType.DENSE), weighted)[0], [0, 0, 0, 1, 0, 0])


def test_signatures_of_32_bits_wrap() -> None:
    seeds = tensor(np.arange(64).reshape(2, 32))
    dense = run_operation(LshProjection(LshProjectionType.DENSE), [seeds, ITEMS])[0]

    sparse = run_operation(LshProjection(LshProjectionType.SPARSE), [seeds, ITEMS])[0]

    texts = ["".join(map(str, row)) for row in dense.reshape(2, 32)]
    assert (sparse.astype(np.int64) % 2**32).tolist() == [int(text, 2) for text in texts]


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        # Published test vectors of Random123.
        ("00000000 00000000", "00000000 " * 4, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff", "ffffffff " * 4, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            "a4093822 299f31d0",
            "243f6a88 85a308d3 13198a2e 03707344",
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_published_philox_words(key: str, counter: str, expected: str) -> None:
    def words(text: str) -> np.ndarray:
        return np.array([int(word, 16) for word in text.split()], np.uint64)

    output = philox_words(words(key), words(counter)[None, :])[0]

    assert " ".join(f"{word:08x}" for word in output) == expected


def test_uniform_numbers_have_20_and_32_bits_of_two_words() -> None:
    first, second, third = philox_uniform(0, 0, 3)

    assert first == ((0x6627E8D5 % 2**20) * 2**32 + 0xE169C58D) / 2**52
    assert second == ((0xBC57AC4C % 2**20) * 2**32 + 0x9B00DBD8) / 2**52
    assert 0 <= third < 1


def drawn(logits: object, num_samples: int, seeds: tuple[int, int]) -> np.ndarray:
    """Samples."""
    operation = RandomMultinomial(num_samples)
    return run_operation(operation, [tensor(logits), tensor(seeds, INTEGERS)])[0]


def test_classes_are_drawn_as_often_as_their_probabilities_say() -> None:
    logits = np.log([[0.1, 0.2, 0.7], [5.0, 4.0, 1.0]])

    samples = drawn(logits, 20000, (37, 42))

    for row, expected in zip(samples, [[0.1, 0.2, 0.7], [0.5, 0.4, 0.1]], strict=True):
        frequencies = np.bincount(row, minlength=3) / 20000
        np.testing.assert_allclose(frequencies, expected, atol=0.015)


def test_logits_that_are_not_finite_are_never_drawn() -> None:
    samples = drawn([[np.inf, 1.0, np.nan, 1.0, -np.inf]], 200, (1, 2))

    assert set(samples.reshape(-1).tolist()) == {1, 3}


def test_seeds_decide_unless_both_are_0() -> None:
    logits = np.zeros((1, 1000))

    check(drawn(logits, 50, (3, -4)), drawn(logits, 50, (3, -4)))
    assert (drawn(logits, 50, (3, -4)) != drawn(logits, 50, (3, 4))).any()
    assert (drawn(logits, 50, (0, 0)) != drawn(logits, 50, (0, 0))).any()


def test_largest_elements_come_with_the_chosen_index_of_equal_ones() -> None:
    values = tensor([[3, 1, 3, 2, 3], [-128, -128, 127, 0, 5]], DataType.QASYMM_S8, 0.5)

    top, first = run_operation(TopkV2(3), [values])
    same, last = run_operation(TopkV2(3, larger_index_first=True), [values])

    assert top.tolist() == same.tolist() == [[3, 3, 3], [127, 5, 0]]
    assert first.tolist() == [[0, 2, 4], [2, 4, 3]]
    assert last.tolist() == [[4, 2, 0], [2, 4, 3]]


def test_k_may_be_an_operand() -> None:
    top, indices = run_operation(TopkV2(), [tensor([1, 9, 5]), tensor([2], INTEGERS)])

    check(top, [9, 5])
    check(indices, [1, 2])


@pytest.mark.parametrize(
    ("groups", "expected"), [(3, [0, 2, 4, 1, 3, 5]), (2, [0, 3, 1, 4, 2, 5]), (1, range(6))]
)
def test_elements_are_dealt_out_among_groups(groups: int, expected: list[int]) -> None:
    row = np.arange(6)

    check(run_operation(ChannelShuffle(groups), [tensor([row])])[0], [list(expected)])
    check(
        run_operation(ChannelShuffle(groups, 0), [tensor(row[:, None])])[0],
        np.reshape(expected, (6, 1)),
    )
