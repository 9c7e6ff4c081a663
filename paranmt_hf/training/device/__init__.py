"""The engine of averaging encoders on a GPU: tables stay there, and each mega-batch synchronises once."""
