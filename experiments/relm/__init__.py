"""The claims of the ReLM paper, made again with corrected methods."""
