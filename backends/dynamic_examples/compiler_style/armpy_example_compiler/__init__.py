"""An example of a backend in compiler style: it fuses layers into programs."""

from armpy_example_compiler.backend import ExampleCompilerBackend

__all__ = ["ExampleCompilerBackend"]
