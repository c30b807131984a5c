"""What a run's journal tells: figures, tables, pages."""
