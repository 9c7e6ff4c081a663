"""Layouts of data sets of paraphrases that others made."""
