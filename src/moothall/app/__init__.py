"""Wiring: settings, the finding of machines, and the commands that all doors share."""
