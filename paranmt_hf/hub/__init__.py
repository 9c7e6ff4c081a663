"""The Hugging Face Hub: models and datasets by folder or id, publishing, cards."""
