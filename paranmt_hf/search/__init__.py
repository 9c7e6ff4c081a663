"""Nearest sentences, and pairs of sentences that mean the same."""
