"""Things that few calls of a model need, each imported when it is first asked for.

A compiled model starts and runs without what compiles others, so that the modules which it needs
import none of that. They import this package instead; its stub says what there is.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
