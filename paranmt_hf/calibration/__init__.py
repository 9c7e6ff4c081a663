"""Calibration of encoders: from the cosine of two sentences to the probability that they are paraphrases."""
