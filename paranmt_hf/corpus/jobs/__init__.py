"""Resumable work over shards, on this machine or on a cluster."""
