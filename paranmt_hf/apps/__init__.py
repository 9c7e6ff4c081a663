"""Programs that use all features: local pages, a server of vectors, the doctor."""
