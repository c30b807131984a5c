"""The kinds of machines, and what each needs."""
