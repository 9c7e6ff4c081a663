"""Search for the settings of an encoder."""
