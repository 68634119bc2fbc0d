"""PyTorch programs on armpy's backends: ``torch.compile(model, backend="armpy")``."""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
