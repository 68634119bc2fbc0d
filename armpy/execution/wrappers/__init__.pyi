from armpy.execution.wrappers.fallback import falling_back as falling_back
from armpy.execution.wrappers.importing import ImportBinding as ImportBinding
from armpy.execution.wrappers.verbose_log import logged as logged
from armpy.execution.wrappers.spread import Spread as Spread

__all__: list[str]
