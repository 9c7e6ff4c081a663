"""Definitions of word tokens, character trigrams and n-grams, the same for whole columns, and word vectors."""
