from armpy.model.archive import metadata as metadata
from armpy.model.archive import reload as reload

__all__: list[str]
