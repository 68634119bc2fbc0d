# SPDX-License-Identifier: Apache-2.0
"""``armpy devices``: lists what backends run on."""
