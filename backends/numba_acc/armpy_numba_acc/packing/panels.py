"""Weights column by column, in panels of as many columns as a tile has."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]  # Any: of every type


def in_panels(columns: Array, width: int) -> Array:
    """Order values by column panel by panel, with zeros after the last one.

    Parameters
    ----------
    columns : ndarray, shape (columns, ...)

    Returns
    -------
    ndarray, shape (panels, width, ...)
    """
    panels = -(-len(columns) // width)
    padded = np.zeros((panels * width, *columns.shape[1:]), columns.dtype)
    padded[: len(columns)] = columns
    return padded.reshape(panels, width, *columns.shape[1:])


def in_groups(values: Array, width: int, group: int) -> Array:
    """Lines of weights, panel by panel.

    Parameters
    ----------
    values : ndarray, shape (columns, taps, depth)
    width
        Columns of a panel.
    group
        Elements that a step multiplies; each tap's depth is filled up with zeros to whole ones.

    Returns
    -------
    ndarray, shape (panels, taps * steps, width, group)
    """
    columns, taps, depth = values.shape
    steps = -(-depth // group)
    padded = np.zeros((columns, taps, steps * group), values.dtype)
    padded[..., :depth] = values
    return in_panels(padded.reshape(columns, taps * steps, group), width).swapaxes(1, 2)


def with_depth(values: Array, depth: int) -> Array:
    """Weights (columns, taps, depth) with zeros after each tap."""
    return np.pad(values, ((0, 0), (0, 0), (0, depth - values.shape[2])))


def by_element(groups: Array, lanes: int) -> Array:
    """Lines (panels, lines, width, group) vector by vector, and there element by element."""
    panels, lines, width, group = groups.shape
    split = groups.reshape(panels, lines, width // lanes, lanes, group)
    return split.swapaxes(3, 4)


def side_by_side(*parts: Array) -> npt.NDArray[np.uint8]:
    """Order values of consecutive panels: parts (panels, ...) as (panels, bytes)."""
    flat = [np.ascontiguousarray(part).reshape(len(part), -1).view(np.uint8) for part in parts]
    return np.concatenate(flat, axis=1)
