"""Tools that measure models and make other models of them: each is a package of its name."""
