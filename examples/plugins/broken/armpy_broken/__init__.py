# SPDX-License-Identifier: Apache-2.0
"""Plugins that cannot hurt, one to a module."""
