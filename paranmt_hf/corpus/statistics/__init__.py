"""What a corpus holds, counted."""
