"""Looking at runs: pictures."""
