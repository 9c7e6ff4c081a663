"""The Hugging Face Hub: finding models and datasets by folder or id, publishing, and cards."""
