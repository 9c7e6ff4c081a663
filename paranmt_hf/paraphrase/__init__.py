"""Paraphrase generation: encoder-decoders, their training, and paraphrases of sentences.

Importing `loading.py` registers the encoder-decoders with transformers.
"""
