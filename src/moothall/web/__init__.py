"""The page: a door of HTTP on this machine. It parses, calls `app`, and renders; it decides nothing about runs."""
