"""Measures of speech: word error rate of recognition, mel-cepstral distortion of synthesis."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import groupby

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.ops.operation import Array
from armpy.tensor import format_shape

WORD_BOUNDARIES = (" ", "|", "▁", "<space>")
"""Labels that stand between words where the other labels are letters."""

BLANKS = ("", "<blank>", "<pad>", "[PAD]", "_", "sil", "<sil>", "<eps>")
"""Labels that stand for no sound."""

_DECIBELS = 10 / math.log(10) * math.sqrt(2)


@dataclass(frozen=True, slots=True)
class WordErrors:
    """Edits that turn recognised words into the spoken ones."""

    edits: int  # substitutions, insertions and deletions, as few as possible
    num_words: int  # spoken words

    @property
    def rate(self) -> float:
        """Edits by spoken words; above 1 where there are more. Infinite edits of no words."""
        if not self.num_words:
            return math.inf if self.edits else 0.0
        return self.edits / self.num_words

    def __add__(self, other: WordErrors) -> WordErrors:
        return WordErrors(self.edits + other.edits, self.num_words + other.num_words)


def edit_distance(expected: Sequence[str], actual: Sequence[str]) -> int:
    """Fewest substitutions, insertions and deletions between two sequences.

    References
    ----------
    Levenshtein, "Binary codes capable of correcting deletions, insertions, and reversals", 1966.
    """
    distances = list(range(len(actual) + 1))
    for number, word in enumerate(expected, 1):
        diagonal, distances[0] = distances[0], number
        for place, other in enumerate(actual, 1):
            substituted = diagonal + (word != other)
            diagonal = distances[place]
            distances[place] = min(substituted, distances[place] + 1, distances[place - 1] + 1)
    return distances[-1]


def word_errors(expected: str, actual: str) -> WordErrors:
    """Compare two texts word by word; words are separated by white space, and case counts."""
    words = expected.split()
    return WordErrors(edit_distance(words, actual.split()), len(words))


def decode_frames(scores: Array, labels: Sequence[str], blanks: Collection[str] = BLANKS) -> str:
    """Read the text from the scores of each frame, the best label at a time.

    Parameters
    ----------
    scores : ndarray
        Frames by labels, with axes of one element before.
    labels : sequence of str
        Of the last axis: words, phones or letters, with one of `WORD_BOUNDARIES` among letters.
    blanks : collection of str
        Labels that are left out; a label that is repeated with a blank between counts twice.

    Raises
    ------
    InvalidArgumentError
        If there are not as many labels as scores of a frame.

    Notes
    -----
    The greedy decoding of connectionist temporal classification. States of Kaldi's models are no
    labels: a graph of a lexicon and a language model turns these into words.
    """
    if scores.ndim < 2 or scores.shape[-1] != len(labels) or math.prod(scores.shape[:-2]) != 1:
        raise InvalidArgumentError(
            "the scores cannot be decoded",
            where="labels",
            expected=f"one output of frames by {len(labels)} labels",
            actual=format_shape(scores.shape),
            fix="Give a file with one label for each score of a frame",
        )
    best = scores.reshape(scores.shape[-2:]).argmax(-1).tolist()
    sounds = [labels[place] for place, _ in groupby(best) if labels[place] not in blanks]
    if not any(label in WORD_BOUNDARIES for label in labels):
        return " ".join(sounds)
    return "".join(" " if label in WORD_BOUNDARIES else label for label in sounds).strip()


def mel_cepstral_distortion(expected: Array, actual: Array) -> float:
    """Mean distance of mel-cepstral coefficients over frames, in decibels.

    Parameters
    ----------
    expected, actual : ndarray
        Frames by coefficients, with axes of one element before; both of the same shape.

    Raises
    ------
    InvalidArgumentError
        If they have other shapes, or no coefficients.

    Notes
    -----
    ``10 / ln 10 * sqrt(2 * sum((c - d) ** 2))``, without coefficient 0, which is the loudness.
    Frames are compared one by one, without warping of time.

    References
    ----------
    Kubichek, "Mel-cepstral distance measure for objective speech quality assessment", 1993.
    """
    is_usable = expected.ndim >= 2 and expected.shape[-1] > 1 and expected.size > 0
    if expected.shape != actual.shape or not is_usable:
        raise InvalidArgumentError(
            "the mel-cepstral coefficients cannot be compared",
            expected=f"frames by 2 coefficients or more, as {format_shape(expected.shape)}",
            actual=format_shape(actual.shape),
        )
    difference = (expected.astype(np.float64) - actual.astype(np.float64))[..., 1:]
    return float(_DECIBELS * np.sqrt((difference**2).sum(-1)).mean())
