"""Other programs that pump the runs of a store, where many hosts share the work."""
