"""Sent2Vec: training, and the model files of its authors' program."""
