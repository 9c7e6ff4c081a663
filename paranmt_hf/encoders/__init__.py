"""Sentence encoders by the names of the papers; each is one sentence-transformers module or a sequence of them."""
