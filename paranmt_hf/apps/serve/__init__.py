"""`paranmt serve`: an encoder behind HTTP."""
