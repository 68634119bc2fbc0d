# SPDX-License-Identifier: Apache-2.0
"""What tests of armpy, its backends and its extensions share: backends, models, helpers."""
