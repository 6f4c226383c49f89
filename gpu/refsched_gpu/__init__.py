"""refsched_gpu: calibrate refsched's cost model on a GPU. The package is reserved; measuring is not built yet."""
