"""Evaluate sentence encoders the way the papers do, and the way MTEB does."""
