# SPDX-License-Identifier: Apache-2.0
"""Layers of .armnn files as layers of a network: one table of functions by kind."""
