"""Programs over all features: the local pages, the doctor."""
