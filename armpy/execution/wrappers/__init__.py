"""Wrappers of an execution's steps: variables, profiles, logs, stops, second tries.

Few executions are spread over backends or have imported tensors: what these need is imported then.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
