"""Scores and checks of pairs."""
