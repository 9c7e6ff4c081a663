"""Base of all layers: files, work in progress, settings, progress, optional packages."""
