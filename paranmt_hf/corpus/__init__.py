"""Paraphrase corpora: reading what others wrote, translating, scoring, selecting, and writing them with a card."""
