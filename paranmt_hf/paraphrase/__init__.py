"""Paraphrase generation: encoder-decoders, their training, and paraphrases of sentences.

Importing a module of it that works with models tells transformers of the encoder-decoder (`registration.py`).
"""
