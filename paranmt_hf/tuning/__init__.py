"""Search for the best settings of an encoder or of a model for a task."""
