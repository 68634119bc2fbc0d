# SPDX-License-Identifier: Apache-2.0
"""Optimising, loading, running and profiling networks."""
