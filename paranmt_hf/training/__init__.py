"""Training of sentence encoders on paraphrase pairs with hard negatives from mega-batches."""
