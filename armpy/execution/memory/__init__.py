"""Memory of backends: allocators, arenas in turn, held and released memory."""
