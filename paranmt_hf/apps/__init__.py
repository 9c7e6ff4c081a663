"""Programs over all features: the local pages, the quickstart, the doctor."""
