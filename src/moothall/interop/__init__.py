"""Formats of other tools: what they describe becomes a machine, and a machine becomes what they read."""
