"""Constituency trees of sentences, from parsers or files, and their top levels."""
