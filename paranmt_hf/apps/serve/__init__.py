"""`paranmt serve`: a server that encodes sentences over HTTP."""
