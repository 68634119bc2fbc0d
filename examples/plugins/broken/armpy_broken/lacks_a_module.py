"""Needs what is not installed, and does not say so in its project."""

import acme_neural_toolkit  # type: ignore[import-not-found]  # noqa: F401
