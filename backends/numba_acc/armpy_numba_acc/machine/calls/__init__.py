"""Records of calls, by the kernels' families; each is imported when it is first asked for.

Notes
-----
A process whose programs are kept on disk makes no call, and need not define the records.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
