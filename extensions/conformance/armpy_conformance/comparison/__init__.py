# SPDX-License-Identifier: Apache-2.0
"""Differences between answers: tensors, layers, whole models, and the first layer that differs."""
