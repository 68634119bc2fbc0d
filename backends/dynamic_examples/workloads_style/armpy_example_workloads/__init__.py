"""An example of a backend in workloads style: it runs layers one by one."""

from armpy_example_workloads.backend import ExampleWorkloadsBackend

__all__ = ["ExampleWorkloadsBackend"]
