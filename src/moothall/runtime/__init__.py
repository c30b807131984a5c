"""Durable runs of any machine: journal, decisions, worker. Knows no agent and no engine."""
