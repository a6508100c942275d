"""Suite files: reading and writing TOML, with the position of everything that is refused."""
