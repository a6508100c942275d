//! Machines that read lexemes: a finite lexer, and a parser stack that sees terminals only.
//!
//! ```text
//! bytes ──► lexer (LexerStateId) ──terminal──► parser stacks (ParserStateId)
//! ```
//!
//! A token has the same effect on the lexer under every stack, so that effect is cached. A mask
//! then queries the stacks about terminals, not about bytes.

use std::sync::Arc;

use formalm_core::{Error, MaskClassId, Resource, StateId};

/// Identifies a state of the lexer with its negative threads; valid for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LexerStateId(pub u32);

/// Identifies a set of parser stacks between lexemes; valid as long as what it is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParserStateId(pub u32);

/// Identifies the set of terminals that may follow, as the lexer sees it before a lexeme; valid for
/// good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LexerContextId(pub u32);

/// Identifies the top of a parser state down to some depth; valid for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackPrefixId(pub u32);

/// The error that reports that a query depends on more of the stack than its prefix shows.
pub const NEEDS_DEEPER_STACK: Error =
    Error::Limit { resource: Resource::Nesting, needed: u64::MAX, allowed: 0 };

/// A way in which a lexeme ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LexemeEnd {
    /// The terminal of the lexeme.
    pub terminal: u32,
    /// The negative lookahead threads that run from here on; zero for none.
    pub negative_threads: u32,
}

/// The effect of a byte on a lexeme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexemeStep {
    /// The state of the lexer if the lexeme continues.
    pub next: Option<LexerStateId>,
    /// The ways in which the lexeme may end here, as an argument of
    /// [`LexerTables::lexeme_ends`]; zero for none.
    pub ends: u32,
    /// `true` if not every continuation is proven live: query byte by byte.
    pub context_dependent: bool,
}

/// One way in which a lexical machine has split the input so far, outside sublanguages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexicalConfiguration {
    /// The state of the lexer.
    pub lexer_state: LexerStateId,
    /// The parser state before the lexeme.
    pub parser_state: ParserStateId,
    /// The negative threads of the last lexeme if the input is between two lexemes; a sublanguage
    /// may begin there. `None` inside a lexeme.
    pub between: Option<u32>,
}

/// A position inside a sublanguage: a terminal that a machine of its own reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SublanguagePosition {
    /// The terminal.
    pub terminal: u32,
    /// The state of its machine.
    pub state: StateId,
    /// The parser state before the terminal.
    pub parser_state: ParserStateId,
}

/// A finite lexer: its states, the effect of bytes, and the ends of lexemes.
pub trait LexerTables {
    /// Returns the lexer state before a lexeme, given the negative threads of the last one, or
    /// `None` if nothing may follow.
    fn lexer_start(&self, lexer_context: LexerContextId, threads: u32) -> Option<LexerStateId>;

    /// Returns `true` if negative threads of the last lexeme are no obstacle in a context, wherever
    /// that context is completable.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn threads_fit(&self, lexer_context: LexerContextId, threads: u32) -> Result<bool, Error>;

    /// Reads a byte.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn read_byte(&self, lexer_state: LexerStateId, byte: u8) -> Result<LexemeStep, Error>;

    /// Returns a state from which every byte has the same effect, mostly the same one for all such
    /// states.
    fn canonical_state(&self, lexer_state: LexerStateId) -> LexerStateId;

    /// Returns negative threads that forbid the same strings, mostly fewer.
    fn without_redundant_threads(&self, threads: u32) -> u32;

    /// Returns the list of lexeme ends that a number of [`LexemeStep::ends`] stands for.
    fn lexeme_ends(&self, ends: u32) -> Arc<[LexemeEnd]>;

    /// Advances negative threads by one byte, or returns `None` if one of them matches.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn step_threads(&self, threads: u32, byte: u8) -> Result<Option<u32>, Error>;
}

/// Parser stacks as lexemes see them: sets of stacks, and the terminals that may follow.
pub trait ParserTables {
    /// Returns the configurations of a class outside sublanguages, or `None` if bytes must be read
    /// one by one.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn configurations(&self, key: MaskClassId) -> Result<Option<Vec<LexicalConfiguration>>, Error>;

    /// Returns the set of terminals that may follow a parser state.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn lexer_context(&self, parser_state: ParserStateId) -> Result<LexerContextId, Error>;

    /// Returns the parser state after a terminal, or `None` if it cannot be shifted.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn after_terminal(
        &self,
        parser_state: ParserStateId,
        terminal: u32,
    ) -> Result<Option<ParserStateId>, Error>;

    /// Returns `true` if every step that is not context-dependent can be completed in a parser
    /// state.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn is_completable(&self, parser_state: ParserStateId) -> Result<bool, Error>;

    /// Returns the top of a parser state down to `depth`, or `None` if that is too large.
    fn stack_prefix(&self, parser_state: ParserStateId, depth: u32) -> Option<StackPrefixId>;

    /// Returns a parser state that stands for all states with a prefix: its answers are theirs. An
    /// answer that depends on more of the stack is the error [`NEEDS_DEEPER_STACK`].
    fn prefix_representative(&self, prefix: StackPrefixId) -> ParserStateId;
}

/// Sublanguages: terminals that machines of their own read. By default there are none.
pub trait SublanguageTables {
    /// Returns `true` if the machine has sublanguages.
    fn has_sublanguages(&self) -> bool {
        false
    }

    /// Returns the positions of a class inside sublanguages, or `None` if bytes must be read one by
    /// one. A position may continue with whatever its machine allows.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn sublanguage_positions(
        &self,
        _key: MaskClassId,
    ) -> Result<Option<Vec<SublanguagePosition>>, Error> {
        Ok(Some(Vec::new()))
    }

    /// Returns the class after the end of a sublanguage, valid as long as what it is read from.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn class_after_sublanguage(
        &self,
        _position: &SublanguagePosition,
    ) -> Result<Option<MaskClassId>, Error> {
        Ok(None)
    }

    /// Returns the class of a class's configurations outside sublanguages, valid as long as what it
    /// is read from. Returns `None` if there are none.
    fn class_outside_sublanguages(&self, key: MaskClassId) -> Option<MaskClassId> {
        Some(key)
    }

    /// Returns the sublanguages that may begin in a parser state.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn sublanguages_at(&self, _parser_state: ParserStateId) -> Result<Vec<u32>, Error> {
        Ok(Vec::new())
    }
}

/// The lexer and parser of a machine, as one mask sees them.
///
/// Unless a step is context-dependent, everything viable can be completed to a member.
pub trait LexicalMachine: LexerTables + ParserTables + SublanguageTables {}

impl<T: LexerTables + ParserTables + SublanguageTables> LexicalMachine for T {}

/// The lexical machine of machines that have none; uninhabited.
#[derive(Clone, Copy, Debug)]
pub enum NoLexicalMachine {}

impl LexerTables for NoLexicalMachine {
    fn lexer_start(&self, _: LexerContextId, _: u32) -> Option<LexerStateId> {
        match *self {}
    }

    fn threads_fit(&self, _: LexerContextId, _: u32) -> Result<bool, Error> {
        match *self {}
    }

    fn read_byte(&self, _: LexerStateId, _: u8) -> Result<LexemeStep, Error> {
        match *self {}
    }

    fn canonical_state(&self, _: LexerStateId) -> LexerStateId {
        match *self {}
    }

    fn without_redundant_threads(&self, _: u32) -> u32 {
        match *self {}
    }

    fn lexeme_ends(&self, _: u32) -> Arc<[LexemeEnd]> {
        match *self {}
    }

    fn step_threads(&self, _: u32, _: u8) -> Result<Option<u32>, Error> {
        match *self {}
    }
}

impl ParserTables for NoLexicalMachine {
    fn configurations(&self, _: MaskClassId) -> Result<Option<Vec<LexicalConfiguration>>, Error> {
        match *self {}
    }

    fn lexer_context(&self, _: ParserStateId) -> Result<LexerContextId, Error> {
        match *self {}
    }

    fn after_terminal(&self, _: ParserStateId, _: u32) -> Result<Option<ParserStateId>, Error> {
        match *self {}
    }

    fn is_completable(&self, _: ParserStateId) -> Result<bool, Error> {
        match *self {}
    }

    fn stack_prefix(&self, _: ParserStateId, _: u32) -> Option<StackPrefixId> {
        match *self {}
    }

    fn prefix_representative(&self, _: StackPrefixId) -> ParserStateId {
        match *self {}
    }
}

impl SublanguageTables for NoLexicalMachine {}
