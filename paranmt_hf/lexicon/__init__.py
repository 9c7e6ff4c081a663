"""Lexicons of word paraphrases, counted in a corpus of sentence pairs."""
