"""Measures of speech against values that were computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from armpy.errors import InvalidArgumentError
from armpy_testing.models.networks import floats
from armpy_tools.accuracy.speech import (
    WordErrors,
    decode_frames,
    edit_distance,
    mel_cepstral_distortion,
    word_errors,
)


@pytest.mark.parametrize(
    ("expected", "actual", "distance"),
    [
        ("", "", 0),
        ("", "a b", 2),
        ("a b", "", 2),
        ("a b c", "a b c", 0),
        ("a b c", "a x c", 1),
        ("a b c", "a c", 1),
        ("a c", "a b c", 1),
        ("a b c d", "b c d e", 2),
        ("the cat sat on the mat", "the cat sit on mat", 2),
        ("k i t t e n", "s i t t i n g", 3),
        ("s a t u r d a y", "s u n d a y", 3),
    ],
)
def test_a_distance_counts_the_fewest_edits(expected: str, actual: str, distance: int) -> None:
    assert edit_distance(expected.split(), actual.split()) == distance
    assert edit_distance(actual.split(), expected.split()) == distance


def test_a_word_error_rate_is_edits_by_spoken_words() -> None:
    errors = word_errors("the cat sat on the mat", "the cat sit on mat")
    assert errors == WordErrors(2, 6)
    assert errors.rate == pytest.approx(1 / 3)
    # Of several texts by all their words: the mean of the rates, (1/3 + 2)/2, is another number.
    total = errors + word_errors("yes", "no it")
    assert total == WordErrors(4, 7)
    assert total.rate == pytest.approx(4 / 7)


def test_words_that_are_not_spoken_are_errors() -> None:
    assert word_errors("", "a").rate == math.inf
    assert word_errors("", "").rate == 0
    assert word_errors("Yes", "yes").rate == 1


def frames(*best: int, labels: int) -> np.ndarray:
    """Scores whose best labels are these."""
    return np.eye(labels, dtype=np.float32)[list(best)][np.newaxis]


def test_frames_become_words_without_repetitions_and_blanks() -> None:
    labels = ["<blank>", "yes", "no"]
    scores = frames(0, 1, 1, 0, 1, 2, 2, 0, labels=3)
    assert decode_frames(scores, labels) == "yes yes no"
    assert decode_frames(scores[0], labels) == "yes yes no"


def test_letters_become_words_at_their_boundaries() -> None:
    labels = ["_", "|", "a", "b"]
    scores = frames(2, 3, 3, 0, 3, 1, 1, 0, 2, 1, labels=4)
    assert decode_frames(scores, labels) == "abb a"


@pytest.mark.parametrize("shape", [(3,), (2, 4, 3), (1, 4, 2)])
def test_scores_of_another_shape_cannot_be_decoded(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidArgumentError, match="frames by 3 labels"):
        decode_frames(np.zeros(shape, np.float32), ["a", "b", "c"])


def test_a_distortion_is_the_mean_over_frames_without_coefficient_0() -> None:
    expected = np.array([[[9, 1, 2], [9, 0, 0], [9, 5, 5]]], np.float32)
    actual = np.array([[[1, 4, 6], [2, 0, 0], [3, 5, 6]]], np.float32)
    # Distances of the frames by hand: sqrt(9 + 16) = 5, 0, and 1. 10 sqrt(2) / ln 10 = 6.14185...
    assert mel_cepstral_distortion(expected, actual) == pytest.approx(6.141851463713754 * 2)
    assert mel_cepstral_distortion(expected, expected) == 0


@pytest.mark.parametrize("shape", [(2, 3), (1, 2, 2), (1, 0, 3)])
def test_coefficients_of_other_shapes_cannot_be_compared(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be compared"):
        mel_cepstral_distortion(np.zeros((1, 2, 3)), np.zeros(shape))


def test_a_distortion_needs_more_than_the_loudness() -> None:
    with pytest.raises(InvalidArgumentError, match="2 coefficients or more"):
        mel_cepstral_distortion(floats(1, 2)[:, None], floats(1, 2)[:, None])
