"""Build a paraphrase corpus: bitext in, back-translation, scores, release."""
