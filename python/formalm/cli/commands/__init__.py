"""The commands, one module each: parse options, call one function, print its result."""
