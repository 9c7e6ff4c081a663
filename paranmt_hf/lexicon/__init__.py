"""Word paraphrases found in a corpus of sentence pairs."""
