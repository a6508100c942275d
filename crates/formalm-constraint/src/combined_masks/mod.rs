//! Masks of machines that are made of others: position automata, grammars with sublanguages, and
//! intersections.

mod abstract_state_masks;
mod part_masks;
mod position_automaton_masks;
mod sublanguage_masks;

pub use abstract_state_masks::AbstractStateClasses;
pub use position_automaton_masks::PositionMaskClasses;
pub use sublanguage_masks::SublanguageMaskClasses;
