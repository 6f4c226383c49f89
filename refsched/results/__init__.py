"""Result files of benchmark tools: read, recomputed under each tool's own definitions, and held against the reference."""
