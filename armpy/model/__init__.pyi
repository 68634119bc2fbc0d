from armpy.model.load_options import LoadOptions as LoadOptions
from armpy.model.model import Model as Model

__all__: list[str]
