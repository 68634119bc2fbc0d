# SPDX-License-Identifier: Apache-2.0
"""Descriptors, which configure layers, and parameters of LSTMs."""
