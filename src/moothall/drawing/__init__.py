"""How a machine is drawn."""
