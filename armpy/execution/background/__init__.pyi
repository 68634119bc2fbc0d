from armpy.execution.background.tiers import Tiers as Tiers

__all__: list[str]
