"""The claims of the ReLM paper, made again with corrected methods."""

import os

# The matrices of the embedded models are so small that BLAS threads would wait for each other.
# NumPy reads this when it is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
