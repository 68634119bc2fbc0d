"""From a model's description to networks on devices: support, lowering, output shapes."""
