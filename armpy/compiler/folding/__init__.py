# SPDX-License-Identifier: Apache-2.0
"""Folding: what follows from constants and shapes, computed while a network is specialised."""
