"""Models that break a rule of NNAPI, or may break one, made of random valid models."""
