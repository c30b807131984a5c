"""Workflow files: what they may say, what is wrong with one, and the machine that one stands for."""
