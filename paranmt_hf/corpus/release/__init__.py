"""Corpora as they are released: schema, files, record, card."""
