"""Script engines, each behind its own wall: data in, data out, nothing of the host inside."""
