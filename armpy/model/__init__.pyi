from armpy.model import derived_models as derived_models
from armpy.model import display as display
from armpy.model import pickling as pickling
from armpy.model import save as save
from armpy.model import state as state
from armpy.model.load_options import LoadOptions as LoadOptions
from armpy.model.load_request import LoadRequest as LoadRequest
from armpy.model.load_request import as_source as as_source
from armpy.model.load_request import begins_prepared as begins_prepared
from armpy.model.model import Model as Model
from armpy.model.model_files import ModelOrigin as ModelOrigin
from armpy.model.open_shapes import InputShapes as InputShapes
from armpy.model.open_shapes import choose_shapes as choose_shapes
from armpy.model.open_shapes import dimension_names_of as dimension_names_of
from armpy.model.open_shapes import input_shapes as input_shapes
from armpy.model.open_shapes import prepare_for as prepare_for

__all__: list[str]
