"""Native code in this process: object files, and functions that Python calls.

Notes
-----
The package's names are imported when first used: a process that has the backend and
does not use it loads no code.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
