"""Filters of rows over a whole corpus, and the settings that choose them."""
