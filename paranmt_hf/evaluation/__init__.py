"""Evaluate sentence encoders as the papers do, and as MTEB does."""
