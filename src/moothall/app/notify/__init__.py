"""Who is told while runs go on."""
