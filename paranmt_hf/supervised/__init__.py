"""Encoders trained for a task."""
