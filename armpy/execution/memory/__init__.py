"""Memory of backends: allocators, arenas in turn, what is held, what is given back."""
