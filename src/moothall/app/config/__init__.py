"""What a user has set: settings, trust, models, the store."""
