"""Pairs of words and phrases: files of the Paraphrase Database (PPDB), and lists of words and their paraphrases."""
