"""Analyses of the sibling papers: what encoders and word vectors do well, and why."""
