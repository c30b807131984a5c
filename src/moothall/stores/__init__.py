"""Where runs are kept: one store per file, all with the same contract."""
