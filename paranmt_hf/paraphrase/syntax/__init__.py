"""Syntactically controlled paraphrases: a tree is generated from a template, and a sentence after that tree."""
