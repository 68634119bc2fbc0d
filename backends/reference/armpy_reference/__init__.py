"""CpuRef, armpy's reference backend: every operation in NumPy, the definition of right answers."""

from armpy_reference.backend import ReferenceBackend

__all__ = ["ReferenceBackend"]
