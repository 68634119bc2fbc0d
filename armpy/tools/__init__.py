"""Facts about models, for commands and extensions: `inspect`, `compare`, `measure`, `pages`.

`compare` has errors of tensors and layers, `measure` latencies and other engines, `inspect` what a
model is made of, and `pages` the parts of pages for browsers.
"""
