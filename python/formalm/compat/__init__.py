"""Other libraries' interfaces on ours, for code that was written for them."""
