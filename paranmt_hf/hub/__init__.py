"""What the Hugging Face Hub shows: cards."""
