# SPDX-License-Identifier: Apache-2.0
"""A backend as the core sees it: every call contained, every answer checked."""
