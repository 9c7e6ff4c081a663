"""Distillation: encoders and word vectors that are learned from larger encoders."""
