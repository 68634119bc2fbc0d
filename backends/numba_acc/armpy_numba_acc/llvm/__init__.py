"""Vocabulary for LLVM's language: values, loops, pointers, and the compiler."""
