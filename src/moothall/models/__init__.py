"""Models behind the one port: offline ones, and adapters to providers."""
