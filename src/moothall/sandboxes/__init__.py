"""Where commands run: one way of protecting the machine per file."""
