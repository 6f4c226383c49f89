"""refsched_gpu: measure what iterations of an engine cost on the device at hand, with NumPy or with CuPy."""
