"""Back-translation: the protocol, batches, checkpoints, two engines."""
