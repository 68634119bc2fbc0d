from logging import getLogger as getLogger

__all__: list[str]
