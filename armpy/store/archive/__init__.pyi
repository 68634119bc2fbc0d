from armpy.store.archive import signing as signing

__all__: list[str]
