# SPDX-License-Identifier: Apache-2.0
"""Setup of a runtime: its options, the settings of its networks, its backends."""
