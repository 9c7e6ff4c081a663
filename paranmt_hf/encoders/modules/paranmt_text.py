"""Definitions of words and character n-grams; released models have `text/definitions.py` under this name."""

from paranmt_hf.text.definitions import character_ngrams, rows_of_word, vocabulary_of, word_tokenizer, words

__all__ = ["character_ngrams", "rows_of_word", "vocabulary_of", "word_tokenizer", "words"]
