from armpy.serving.kserve.model import ArmpyModel as ArmpyModel
from armpy.serving.kserve.repository import ArmpyModelRepository as ArmpyModelRepository
from armpy.serving.kserve.server import ArmpyModelServer as ArmpyModelServer

__all__: list[str]
