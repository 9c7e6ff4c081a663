"""Paraphrase generation: encoder-decoders, their training, and paraphrases of sentences.

Importing `models.py` registers the encoder-decoders with transformers.
"""
