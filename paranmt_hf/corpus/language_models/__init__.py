"""Language models behind an OpenAI-compatible server, as translators and paraphrasers."""
