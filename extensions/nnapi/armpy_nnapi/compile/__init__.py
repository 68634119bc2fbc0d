# SPDX-License-Identifier: Apache-2.0
"""Compilations: a model on its devices, and what its executions take and give."""
