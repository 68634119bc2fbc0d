"""Code generation: from Python and LLVM's language to object code."""
