"""Expected results of a user's data: labels, words, mel-cepstral coefficients, elements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.ops.operation import Array
from armpy_tools.accuracy.speech import (
    WordErrors,
    decode_frames,
    mel_cepstral_distortion,
    word_errors,
)
from armpy_tools.comparison.errors import errors

LABELS = "labels"
"""Array of a file with the label of each score, for words."""

_CLASS, _WORDS, _CEPSTRA, _OUTPUT = "class", "words", "cepstra", "out"
_FIRST = 5


@dataclass(frozen=True, eq=False, slots=True)
class ExpectedResult:
    """Expected result of one sample."""

    sample: str  # name, for messages
    arrays: Mapping[str, Array]
    """Expected arrays by ``class``, ``words``, ``cepstra``, or ``out0``, ``out1`` and so on."""


@dataclass(frozen=True, eq=False, slots=True)
class ExpectedResults:
    """Expected results of a model's samples."""

    results: tuple[ExpectedResult, ...] = ()  # one for each sample; empty if the file has none
    labels: tuple[str, ...] = ()  # of the last axis of the first output, for words
    source: str = ""  # the file

    def scores(self, answers: Sequence[Sequence[Array]]) -> dict[str, float]:
        """Measure answers by every kind of result that is expected.

        Parameters
        ----------
        answers : sequence of sequence of ndarray
            Outputs of each sample, as real numbers.

        Returns
        -------
        dict of str to float
            By measure, over all samples that have such a result.

        Raises
        ------
        InvalidArgumentError
            If an answer cannot be compared with the expected one.
        """
        pairs = list(zip(self.results, answers, strict=False))
        return {
            **self._class_scores(self._of(pairs, _CLASS)),
            **self._word_scores(self._of(pairs, _WORDS)),
            **self._cepstra_scores(self._of(pairs, _CEPSTRA)),
            **_element_scores(pairs),
        }

    def _of(
        self, pairs: Iterable[tuple[ExpectedResult, Sequence[Array]]], name: str
    ) -> list[tuple[Array, Array]]:
        """Expected array and first output of each sample that has an array of a name."""
        return [(e.arrays[name], outputs[0]) for e, outputs in pairs if name in e.arrays]

    def _class_scores(self, pairs: Sequence[tuple[Array, Array]]) -> dict[str, float]:
        """Shares of samples whose class has the highest score, or one of the five highest."""
        ranks = [self._rank(expected, output) for expected, output in pairs]
        if not ranks:
            return {}
        return {
            "top-1 accuracy": sum(rank == 0 for rank in ranks) / len(ranks),
            "top-5 accuracy": sum(rank < _FIRST for rank in ranks) / len(ranks),
        }

    def _rank(self, expected: Array, output: Array) -> int:
        """Number of classes ahead of the expected one; of equal scores the first class leads."""
        scores = output.reshape(-1)
        if expected.size != 1 or expected.dtype.kind not in "iu" or not 0 <= expected < scores.size:
            raise InvalidArgumentError(
                "the expected class cannot be used",
                where=self.source,
                expected=f"an integer from 0 to {scores.size - 1}",
                actual=str(expected.tolist()),
            )
        place = int(expected.reshape(()))
        ahead = (scores > scores[place]).sum() + (scores[:place] == scores[place]).sum()
        return int(ahead)

    def _word_scores(self, pairs: Sequence[tuple[Array, Array]]) -> dict[str, float]:
        """Edits over all samples by their expected words."""
        if not pairs:
            return {}
        errors_by_word = [
            word_errors(str(expected), decode_frames(output, self.labels))
            for expected, output in pairs
        ]
        return {"word error rate": sum(errors_by_word, WordErrors(0, 0)).rate}

    def _cepstra_scores(self, pairs: Sequence[tuple[Array, Array]]) -> dict[str, float]:
        """Mean over samples."""
        distortions = [mel_cepstral_distortion(expected, output) for expected, output in pairs]
        return (
            {"mel-cepstral distortion, dB": sum(distortions) / len(distortions)}
            if distortions
            else {}
        )


def _element_scores(
    pairs: Sequence[tuple[ExpectedResult, Sequence[Array]]],
) -> dict[str, float]:
    """Relative error from expected elements of outputs."""
    expected: list[Array] = []
    actual: list[Array] = []
    for result, outputs in pairs:
        for number, output in enumerate(outputs):
            if (right := result.arrays.get(f"{_OUTPUT}{number}")) is not None:
                expected.append(right)
                actual.append(output)
    return {"relative error": errors(expected, actual).relative} if expected else {}


def read_expected(path: Path) -> ExpectedResults:
    """Read the expected results of a file of samples.

    Parameters
    ----------
    path : Path
        An ``.npz`` file with ``<sample>/in0`` for inputs, as of `samples_of`, and for the
        expected result of the sample ``<sample>/class``, ``<sample>/words``,
        ``<sample>/cepstra`` or ``<sample>/out0``; ``labels`` has the label of each score where
        words are expected.

    Raises
    ------
    InvalidArgumentError
        If words are expected and there are no labels.
    """
    with np.load(path) as file:
        names = [key.rpartition("/") for key in file.files]
        samples = dict.fromkeys(
            sample for sample, slash, last in names if slash and last[:2] == "in"
        )
        results = tuple(
            ExpectedResult(
                sample,
                {
                    last: file[f"{sample}/{last}"]
                    for owner, _, last in names
                    if owner == sample and _is_result(last)
                },
            )
            for sample in samples
        )
        labels = tuple(map(str, file[LABELS].tolist())) if LABELS in file.files else ()
    if not any(result.arrays for result in results):
        return ExpectedResults(source=str(path))
    if not labels and any(_WORDS in result.arrays for result in results):
        raise InvalidArgumentError(
            "expected words cannot be compared with scores of unknown labels",
            where=str(path),
            fix=f"Add an array '{LABELS}' with the label of each score of a frame",
        )
    return ExpectedResults(results, labels, str(path))


def _is_result(name: str) -> bool:
    """Return whether an array is an expected result, by its name without the sample's."""
    is_output = name.startswith(_OUTPUT) and name.removeprefix(_OUTPUT).isdigit()
    return is_output or name in (_CLASS, _WORDS, _CEPSTRA)
