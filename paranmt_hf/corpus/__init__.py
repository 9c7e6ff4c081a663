"""Build a paraphrase corpus: bitext in, back-translation, scores, a folder with a card out."""
