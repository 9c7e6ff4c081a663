"""Search for settings: grids, trials, the record of a search."""
