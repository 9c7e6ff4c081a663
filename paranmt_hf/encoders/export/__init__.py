"""Encoders for other libraries."""
