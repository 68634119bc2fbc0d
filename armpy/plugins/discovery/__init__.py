# SPDX-License-Identifier: Apache-2.0
"""Discovery of candidates: entry points of distributions, and folders of modules."""
