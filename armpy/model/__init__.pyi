from armpy.model import state as state
from armpy.model.load_options import LoadOptions as LoadOptions
from armpy.model.model import Model as Model
from armpy.model.model_files import ModelOrigin as ModelOrigin

__all__: list[str]
