"""The training loop of averaging encoders on a GPU: rows stay there, a mega-batch is sent once and looked at once."""
