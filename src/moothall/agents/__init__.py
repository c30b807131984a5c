"""The agent world as values: what is asked of agents, tools and people, and what they reply."""
