"""Made-up rows: typed, seeded, the same every time."""
