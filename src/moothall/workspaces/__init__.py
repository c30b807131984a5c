"""The folder that agents work in: its files, the tools for them, and its saves."""
