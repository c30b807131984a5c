"""Statecharts: definition, interpreter, verification, drawing, simulation. Pure, synchronous, standard library only."""
