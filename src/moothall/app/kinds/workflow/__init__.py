"""Workflow files."""
