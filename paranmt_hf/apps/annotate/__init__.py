"""Human evaluation: a sample from score ranges, people's answers to it, and how far they agree."""
