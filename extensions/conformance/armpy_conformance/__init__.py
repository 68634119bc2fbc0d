"""The conformance kit: shows a backend's author errors by case, shape and element.

Run it with ``armpy conformance ID``, with ``pytest --pyargs armpy_conformance --armpy-backend ID``,
or from code with `run_conformance`.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
