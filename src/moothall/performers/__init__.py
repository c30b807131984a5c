"""One performer per kind of effect: async, one effect in, one event out. They know ports only."""
