# SPDX-License-Identifier: Apache-2.0
"""Commands of the tools; each is a folder of its name."""
