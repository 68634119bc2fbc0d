"""Modules that programs import from ONNX Runtime's package `capi`."""
