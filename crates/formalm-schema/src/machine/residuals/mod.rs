//! Residual obligations.

pub(crate) mod child_start;
pub(crate) mod declared_names;
pub(crate) mod derivative;
