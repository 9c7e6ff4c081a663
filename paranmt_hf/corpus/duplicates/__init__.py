"""Near-duplicates of sentences and of pairs, out of core."""
