"""Features of words."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.graph import Value
from armpy.ops.text import TableLookup
from armpy.ops.text_features import TermWeighting, TfIdfVectorizer
from armpy.types import DataType
from armpy_onnx.node import Node, Operator, OperatorTable


def _tf_idf_vectorizer(node: Node) -> Value:
    words, value = node.strings("pool_strings"), node.value(0)
    if words:
        pool, value = _numbered(node, words)
    else:
        pool = node.integers("pool_int64s")
    starts = node.integers("ngram_counts")
    indexes = node.integers("ngram_indexes")
    shortest, longest = node.integer("min_gram_length"), node.integer("max_gram_length")
    ends = (*starts[1:], len(pool))
    ngrams: list[tuple[int, ...]] = []
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        length = number + 1
        if not 0 <= start <= end <= len(pool) or (end - start) % length:
            raise node.error(
                "n-grams are outside of the pool, or not whole",
                expected=f"ranges up to {len(pool)}",
                actual=f"{start} to {end}",
            )
        ngrams += [pool[at : at + length] for at in range(start, end, length)]
    if len(indexes) != len(ngrams) or min(indexes, default=0) < 0:
        raise node.error(
            "there is not one index of 0 or more per n-gram",
            expected=str(len(ngrams)),
            actual=len(indexes),
        )
    mode = node.text("mode")
    if mode not in TermWeighting.__members__:
        raise node.error(
            "the attribute 'mode' has an unknown value", expected="TF, IDF, TFIDF", actual=mode
        )
    # Those of other lengths are not looked for, but have their places in the output.
    used = [
        (ngram, index)
        for ngram, index in zip(ngrams, indexes, strict=True)
        if shortest <= len(ngram) <= longest
    ]
    return node.layer(
        TfIdfVectorizer(
            tuple(ngram for ngram, _ in used),
            tuple(index for _, index in used),
            tuple(node.attribute("weights", ())),
            TermWeighting[mode],
            max(indexes, default=-1) + 1,
            node.integer("max_skip_count"),
        ),
        value,
    )


def _numbered(node: Node, words: Sequence[str]) -> tuple[tuple[int, ...], Value]:
    """The numbers of a pool's words, and of the input's, which are -1 for others."""
    numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
    keys = node.constant([*numbers], DataType.STRING)
    values = node.constant([*numbers.values()], DataType.SIGNED64)
    default = node.constant([-1], DataType.SIGNED64)
    value = node.layer(TableLookup(), node.value(0), keys, values, default)
    return tuple(numbers[word] for word in words), value


OPERATORS: OperatorTable = {
    "TfIdfVectorizer": Operator(_tf_idf_vectorizer, types=(DataType.FLOAT32,)),
}
