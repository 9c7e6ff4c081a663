"""Supervised tasks over sentence encoders: PARAGRAM-PHRASE (arXiv:1511.08198), section 4.4."""
