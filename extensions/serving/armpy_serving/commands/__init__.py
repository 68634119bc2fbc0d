# SPDX-License-Identifier: Apache-2.0
"""Commands that the extension adds to `armpy`."""
