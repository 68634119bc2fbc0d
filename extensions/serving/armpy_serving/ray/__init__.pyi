from armpy_serving.ray.data import predictor as predictor
from armpy_serving.ray.deployment import deployment as deployment

__all__: list[str]
