"""Errors of meaning that can be seen without a model: numbers, negations and names that only one sentence has."""
