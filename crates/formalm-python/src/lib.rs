//! The extension module `formalm._core`.
