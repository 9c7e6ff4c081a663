"""Sent2Vec (arXiv:1703.02507): its own corpus, kernels and loop."""
