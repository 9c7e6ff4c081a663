"""The modules of our encoders; their code lies beside released weights, so file names are a format."""
