# SPDX-License-Identifier: Apache-2.0
"""Commands that ``armpy conformance`` has where both packages are installed."""
