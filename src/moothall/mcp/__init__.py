"""The door for other people's agents: machines as tools of the Model Context Protocol."""
