"""Native code in this process: object files, and functions that Python calls.

Notes
-----
What the package offers is imported when it is first asked for: a process that has the backend and
does not use it loads no code.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
