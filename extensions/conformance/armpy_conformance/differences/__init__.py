# SPDX-License-Identifier: Apache-2.0
"""Differences of models: the first layer that two backends, or two files, compute differently."""
