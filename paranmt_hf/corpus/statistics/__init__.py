"""Statistics of corpora: samples, figures of diversity, and the counts in a corpus's record."""
