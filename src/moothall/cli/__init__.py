"""The command line: parse, call the app, render. No logic."""
