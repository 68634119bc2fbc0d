"""Calls of attention."""

from __future__ import annotations

from armpy.core.dataclass import dataclass
from armpy_numba_acc.machine.call import Call, Pointer

KEYS_AT_ONCE = 128
"""Keys whose scores are in memory at once."""

MOST_VECTORS = 2
"""Vectors of queries in a block at most."""


@dataclass(frozen=True, slots=True)
class Attention(Call):
    """Attention of float32."""

    parameters = (
        "mask_kind",
        "num_vectors",
        "is_bounded",
        "is_capped",
        "length_bytes",
        "num_rows",
    )

    # Elements of the mask, and whether all queries have the same ones. Otherwise those of a block
    # of queries lie side by side, and `mask_row` bytes after them those of the next key.
    mask_kind: str
    num_vectors: int  # vectors of queries in a block
    is_bounded: int  # whether a query sees only keys from `low` to `high` after its own position
    is_capped: int  # whether `cap` limits scores
    length_bytes: int  # of a number of keys in `lengths`, one per batch; 0 if there are none
    # A power of two that is not less than the number of queries, if keys and values are read row
    # by row, else 0. A row has whole vectors then.
    num_rows: int
    query: Pointer
    key: Pointer
    value: Pointer
    mask: Pointer
    lengths: Pointer
    target: Pointer
    # Room of each thread: for a block of queries their elements, those of the outputs, three rows,
    # and a row for each of `KEYS_AT_ONCE` keys; and the values of as many keys. If these are read
    # row by row, the queries' rows, and outputs as rows and turned round.
    scratch: Pointer
    scratch_pitch: int
    query_batch: int  # bytes from one to the next; so for the others
    query_head: int
    query_row: int
    key_batch: int
    key_head: int
    key_row: int
    value_batch: int
    value_head: int
    value_row: int
    mask_batch: int
    mask_head: int
    mask_row: int
    target_batch: int
    target_head: int
    target_row: int
    batches: int
    heads: int
    heads_per_group: int
    queries: int
    keys: int
    size: int
    value_size: int
    num_past: int  # position of the first query, unless lengths say it
    advance: int  # from one query's position to the next one's: 1, or 0 for heads of one query
    low: int
    high: int
    query_scale: float  # factors of the queries before the product, and of the products
    scale: float
    cap: float
