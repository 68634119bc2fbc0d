"""An example of a backend with vendor extensions of NNAPI."""

from armpy_example_extensions.backend import ExampleExtensionsBackend

__all__ = ["ExampleExtensionsBackend"]
