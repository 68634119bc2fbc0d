"""Records of calls, by the kernels' families."""
