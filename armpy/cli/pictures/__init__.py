# SPDX-License-Identifier: Apache-2.0
"""Pictures as inputs and results: found, read, labelled, drawn upon."""
