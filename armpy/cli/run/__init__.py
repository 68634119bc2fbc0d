# SPDX-License-Identifier: Apache-2.0
"""``armpy run``: run a model on arrays and pictures, and save or print the results."""
