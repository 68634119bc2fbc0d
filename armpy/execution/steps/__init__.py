"""Sessions and steps: what backends make of the layers of a network, and of its control flow.

Few networks have loops that append to a list: what these need is imported then.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
