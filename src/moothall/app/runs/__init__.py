"""What can be done with runs."""
