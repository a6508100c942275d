//! The frontiers of queries over a constraint, as Python drives them.

pub(crate) mod mass_frontier;
pub(crate) mod search_frontiers;
pub(crate) mod search_parts;
pub(crate) mod walk_frontier;
