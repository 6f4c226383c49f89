"""Result files of benchmark tools: read, computed again by each tool's definitions, and held against the reference."""
