"""From a cosine to a probability."""
