"""What tests of armpy, its backends and its extensions share: backends, models, helpers."""
