from armpy_serving.kserve.model import ArmpyModel as ArmpyModel
from armpy_serving.kserve.repository import ArmpyModelRepository as ArmpyModelRepository
from armpy_serving.kserve.server import ArmpyModelServer as ArmpyModelServer

__all__: list[str]
