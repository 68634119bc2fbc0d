# SPDX-License-Identifier: Apache-2.0
"""Memory of backends: allocators, arenas in turn, held and released memory."""
