"""Errors of meaning that are found without a model: numbers, negations and names in only one sentence of a pair."""
