"""Parts of the standard library, and of the core, that few starts need: imported when asked for.

Its stub says what there is.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
