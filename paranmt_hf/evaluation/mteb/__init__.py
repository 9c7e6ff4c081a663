"""Tasks of the library `mteb`: by name, over data on the Hub or in folders, and what an encoder reaches on them."""
