"""Filters of rows over a whole release, and the settings that choose them."""
