from armpy.serving.ray.data import predictor as predictor
from armpy.serving.ray.deployment import deployment as deployment

__all__: list[str]
