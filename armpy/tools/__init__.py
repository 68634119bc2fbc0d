"""Tools that tell people about models and make other models of them.

In come models, profiles and data; out come facts, pages and files. Each tool is a folder that
begins with its `__init__`: `compare`, `benchmark`, `calibrate`, `inspect`, `quantize`, `report`;
`pages` renders what they found for browsers. The command line stands on them and adds nothing but
words.
"""
