# SPDX-License-Identifier: Apache-2.0
"""The commands about backends: listed, measured, tuned, begun anew."""
