"""The modules of our encoders. `save` copies these files next to the weights as they are.

They import one another by `from .paranmt_... import`, which works in both places, and nothing else of this package;
next to weights `paranmt_text.py` is a copy of `text/definitions.py`. The names of the files are part of the format.
"""
