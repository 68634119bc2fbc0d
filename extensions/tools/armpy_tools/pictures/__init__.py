# SPDX-License-Identifier: Apache-2.0
"""Pictures for models: found in folders, read ahead, judged against labels, drawn upon."""
