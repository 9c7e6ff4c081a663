"""Exploring a release: filters, search, histograms."""
