//! Pre-tokenizers: where a text is split before its parts are merged.
//!
//! ```text
//!  tokenizer file ──pretokenizer_config──► split steps ──pike_vm, pretokenizer_nfa──► pretokenizer_dfa
//!                                                                                          │
//!                                                    boundary_automaton: a byte, a state ◄─┘
//!                             pretoken_splitter: the same, for texts that the normalizer keeps
//! ```

pub(super) mod boundary_automaton;
pub(super) mod byte_level_steps;
pub(super) mod open_states;
pub(super) mod pike_vm;
pub(super) mod pretoken_splitter;
pub(super) mod pretokenizer_config;
pub(super) mod pretokenizer_dfa;
pub(super) mod pretokenizer_nfa;
mod section_product;
pub(super) mod unsettled_boundaries;
