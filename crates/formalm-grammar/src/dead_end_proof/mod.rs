//! A proof that ordered lexemes never lead into a dead end.

pub(crate) mod completable_states;
pub(crate) mod lookup;
pub(crate) mod spellable_terminals;
