"""What programs hold of a team."""
