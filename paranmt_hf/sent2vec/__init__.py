"""Sent2Vec: training, and the files of the original program."""
