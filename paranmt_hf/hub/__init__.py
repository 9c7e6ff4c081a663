"""Cards for the Hugging Face Hub."""
