"""Exploring a corpus: filters, search, histograms."""
