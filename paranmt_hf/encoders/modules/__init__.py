"""The modules of our encoders, in files that `save` copies next to the weights as they are.

They import one another by `from .paranmt_... import`, which means the same there, and nothing else of this package;
`paranmt_text.py` becomes a copy of `text/definitions.py`. Their names are a format.
"""
