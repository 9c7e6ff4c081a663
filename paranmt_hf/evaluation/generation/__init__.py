"""What generated sentences are like: paraphrases beside their references, and noisy input in a standard form."""
