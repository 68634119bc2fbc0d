"""Colours of classes on a page, by number."""

from __future__ import annotations

NUM_COLOURS = 10
"""Classes that have a colour of their own; further ones begin anew."""
