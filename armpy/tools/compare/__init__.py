"""How far answers are apart: tensors, layers, whole models, and the first layer that differs."""
