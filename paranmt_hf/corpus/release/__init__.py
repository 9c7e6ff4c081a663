"""Corpora in the form in which they are released: schema, files, record and card."""
