"""Reports: the same numbers as text for people and as JSON for programs."""
