"""What can be known of a machine without running it."""
