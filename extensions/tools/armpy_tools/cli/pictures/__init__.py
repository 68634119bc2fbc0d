# SPDX-License-Identifier: Apache-2.0
"""``armpy pictures``: a model on many pictures, and files of results."""
