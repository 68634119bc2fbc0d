from armpy.execution.background.tiers import Tiers as Tiers, maker_of as maker_of

__all__: list[str]
