"""Servers that offer tools to agents, one protocol per module."""
