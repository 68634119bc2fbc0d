# SPDX-License-Identifier: Apache-2.0
"""``armpy inspect``: what a model is made of and where it would run."""
