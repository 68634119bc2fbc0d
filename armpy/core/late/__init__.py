"""Parts of the standard library that few starts need, each imported when it is first asked for.

Its stub says what there is.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
