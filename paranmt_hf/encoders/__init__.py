"""Sentence encoders by the names of the papers; each is a sentence-transformers module or a stack of them."""
