# SPDX-License-Identifier: Apache-2.0
"""``armpy quantize``: a model of small integers made of a float model."""
