"""Constituency trees of sentences, from a parser or from a file, and their top levels."""
