# SPDX-License-Identifier: Apache-2.0
"""``armpy report``: writes one page about a model, for a browser."""
