# SPDX-License-Identifier: Apache-2.0
"""Commands that this extension adds to `armpy`."""
