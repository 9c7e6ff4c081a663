"""Encoders and word vectors from larger encoders."""
