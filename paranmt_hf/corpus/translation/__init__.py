"""Translation of sentences: settings, batches, checkpoints, and two engines."""
