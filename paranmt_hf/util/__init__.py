"""What all other folders build on: files, unfinished work, records, settings, progress, optional packages."""
