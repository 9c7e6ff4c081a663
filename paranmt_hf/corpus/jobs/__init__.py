"""Resumable work on the shards of a corpus, on this machine or on a cluster."""
