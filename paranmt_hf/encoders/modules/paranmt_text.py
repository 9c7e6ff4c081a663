"""What words and character n-grams are. Next to released weights a copy of that file has this name."""

from paranmt_hf.text.definitions import character_ngrams, vocabulary_of, word_tokenizer, words

__all__ = ["character_ngrams", "vocabulary_of", "word_tokenizer", "words"]
