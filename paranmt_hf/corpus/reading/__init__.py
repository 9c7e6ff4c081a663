"""Aligned text in: readers, lines, columns, normalisation."""
