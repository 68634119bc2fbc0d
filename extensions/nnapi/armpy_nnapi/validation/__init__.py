# SPDX-License-Identifier: Apache-2.0
"""Rules for models as plain data: validity, options, defaults and feature levels."""
