"""Selection of rows from a corpus: filters, and the settings that choose them."""
