from armpy.model.archive import installed_backends as installed_backends
from armpy.model.archive import kept_models as kept_models
from armpy.model.archive import light_loading as light_loading
from armpy.model.archive import model_cache as model_cache
from armpy.model.archive import metadata as metadata
from armpy.model.archive import other_backends as other_backends
from armpy.model.archive import reload as reload

__all__: list[str]
