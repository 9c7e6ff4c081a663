"""Transfer tasks: what simple classifiers can read off the vectors of an encoder."""
