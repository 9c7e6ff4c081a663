"""The engine that trains averaging encoders on a GPU: tables stay there, and each mega-batch synchronises once."""
