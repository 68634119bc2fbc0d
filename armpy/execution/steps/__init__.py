"""Sessions and steps: what backends make of the layers of a network, and of its control flow."""
