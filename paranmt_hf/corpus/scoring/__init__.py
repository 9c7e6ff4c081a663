"""Scores and checks of pairs of sentences."""
