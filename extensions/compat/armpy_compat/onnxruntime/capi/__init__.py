# SPDX-License-Identifier: Apache-2.0
"""Modules that programs import from ONNX Runtime's package `capi`."""
