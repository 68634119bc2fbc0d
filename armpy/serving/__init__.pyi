from armpy.serving.predictor import Predictor as Predictor

__all__: list[str]
