from armpy.model.model import Model as Model

__all__: list[str]
