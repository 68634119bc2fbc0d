# SPDX-License-Identifier: Apache-2.0
from armpy.execution.background.tiers import Tiers as Tiers

__all__: list[str]
