"""A short program for each table and figure of the papers, over the public API."""
