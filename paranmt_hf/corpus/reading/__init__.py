"""Reading of texts and pairs from files of all formats, and from datasets on the Hub."""
