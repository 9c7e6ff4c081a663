"""Exploring a corpus on a page, with filters, search and histograms."""
