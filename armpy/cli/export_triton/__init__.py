"""``armpy export-triton``: puts models into a repository of NVIDIA's Triton Inference Server."""
