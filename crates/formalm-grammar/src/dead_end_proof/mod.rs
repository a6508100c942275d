//! The dead-end proof: for ordinary grammars, ordered lexemes never lead into a dead end.
//!
//! **Problem.** The parser's view is exact: some sequence of terminals completes every stack. It
//! may be impossible to *spell* that sequence, because another lexeme is longer or has priority.
//! Without a proof, every state needs a search for a completion.
//!
//! **Theorem.** Let a *separator* be a string that is always read as ignored lexemes. A terminal is
//! *always spellable* if it has a string that is read as that terminal between two separators, in
//! every context. Then every sequence of always-spellable terminals can be spelled with separators
//! between them, and every stack that such a sequence completes is *completable*.
//!
//! 1. [`spellable_terminals`] finds a separator, and the terminals that are always spellable. The
//!    others are *context-dependent*.
//! 2. [`completable_states`] finds the LR states that always-spellable terminals complete.
//! 3. [`completable_stacks`] decides for a concrete set of stacks, with a few terminals of lookahead.
//!
//! The proof may fail for a grammar that has no dead ends; a search decides then.

pub(crate) mod completable_stacks;
pub(crate) mod completable_states;
pub(crate) mod spellable_terminals;
