"""Models for a supervised task: an encoder, and a classifier over its vectors."""
