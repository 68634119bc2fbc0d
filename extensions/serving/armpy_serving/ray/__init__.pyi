# SPDX-License-Identifier: Apache-2.0
from armpy_serving.ray.data import predictor as predictor
from armpy_serving.ray.deployment import deployment as deployment

__all__: list[str]
