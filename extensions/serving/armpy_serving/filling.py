"""Filling: batches of sizes that are prepared, of fewer rows than these."""

from __future__ import annotations

from armpy_serving.contents import Array


def fill_up(batch: Array, count: int) -> Array:
    """Fill the unused rows of a batch, and return the batch.

    Parameters
    ----------
    batch : ndarray, shape (size, ...)
        Written to after the first `count` rows.
    count : int
        Rows that are there already.

    Notes
    -----
    They hold the first row once more. Zeros may divide by zero or be invalid indices; a row
    that a client has sent does neither. Without any row there are zeros, for shapes and types.
    """
    if count < len(batch):
        batch[count:] = batch[0] if count else 0
    return batch
