"""Whether two sentences mean the same: claims of sentences, and differences between them."""
