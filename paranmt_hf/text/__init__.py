"""What a word token, a character trigram and an n-gram is; the same over columns; word vectors."""
