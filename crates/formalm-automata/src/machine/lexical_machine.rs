//! Machines that read lexemes: a finite lexer, and a parser stack that sees terminals only.
//!
//! ```text
//! bytes ──► lexer (LexerStateId) ──terminal──► parser stacks (ParserStateId)
//! ```
//!
//! A token has the same effect on the lexer under every stack, so that effect is cached. A mask
//! then queries the stacks about terminals, not about bytes.

use std::sync::Arc;

use crate::automaton::KeyId;
use crate::error::{Error, Resource};

/// Identifies a state of the lexer with its negative threads; valid for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scan(pub u32);

/// Identifies a set of parser stacks between lexemes; valid as long as what it is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(pub u32);

/// Identifies the set of terminals that may follow, as the lexer sees it before a lexeme; valid for
/// good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Context(pub u32);

/// Identifies the top of a parser state down to some depth; valid for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Outline(pub u32);

/// The error that reports that a query depends on more of the stack than its prefix shows.
pub const BEYOND: Error =
    Error::Limit { resource: Resource::Nesting, needed: u64::MAX, allowed: 0 };

/// A way in which a lexeme ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ending {
    /// The terminal of the lexeme.
    pub terminal: u32,
    /// The negative lookahead threads that run from here on; zero for none.
    pub left: u32,
}

/// The effect of a byte on a lexeme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The state of the lexer if the lexeme continues.
    pub on: Option<Scan>,
    /// The ways in which the lexeme may end here, as an argument of
    /// [`LexicalMachine::lexeme_ends`]; zero for none.
    pub endings: u32,
    /// `true` if not every continuation is proven live: query byte by byte.
    pub doubtful: bool,
}

/// The lexer and parser of a machine, as one mask sees them.
///
/// Unless a step is context-dependent, everything viable can be completed to a member.
pub trait Lexemes {
    /// Returns the lexer and parser states of a class, or `None` if bytes must be read one by one.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn readings(&self, key: KeyId) -> Result<Option<Vec<(Scan, Place)>>, Error>;

    /// Returns the set of terminals that may follow a parser state.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn context(&self, parser_state: Place) -> Result<Context, Error>;

    /// Returns the lexer state before a lexeme, given the negative threads of the last one, or
    /// `None` if nothing may follow.
    fn scan(&self, lexer_context: Context, threads: u32) -> Option<Scan>;

    /// Returns `true` if negative threads of the last lexeme are no obstacle in a context, wherever
    /// that context is completable.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn fits(&self, lexer_context: Context, threads: u32) -> Result<bool, Error>;

    /// Reads a byte.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn read(&self, lexer_state: Scan, byte: u8) -> Result<Progress, Error>;

    /// Returns the list of lexeme ends that a number of [`LexemeStep::ends`] stands for.
    fn endings(&self, ends: u32) -> Arc<[Ending]>;

    /// Advances negative threads by one byte, or returns `None` if one of them matches.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn pending(&self, threads: u32, byte: u8) -> Result<Option<u32>, Error>;

    /// Returns the parser state after a terminal, or `None` if it cannot be shifted.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn after(&self, parser_state: Place, terminal: u32) -> Result<Option<Place>, Error>;

    /// Returns `true` if every step that is not context-dependent can be completed in a parser
    /// state.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn is_certain(&self, parser_state: Place) -> Result<bool, Error>;

    /// Returns the top of a parser state down to `depth`, or `None` if that is too large.
    fn outline(&self, parser_state: Place, depth: u32) -> Option<Outline>;

    /// Returns a parser state that stands for all states with a prefix: its answers are theirs. An
    /// answer that depends on more of the stack is the error [`NEEDS_DEEPER_STACK`].
    fn drawn(&self, prefix: Outline) -> Place;
}

/// The lexical machine of machines that have none; uninhabited.
#[derive(Clone, Copy, Debug)]
pub enum NoLexemes {}

impl Lexemes for NoLexemes {
    fn readings(&self, _: KeyId) -> Result<Option<Vec<(Scan, Place)>>, Error> {
        match *self {}
    }

    fn context(&self, _: Place) -> Result<Context, Error> {
        match *self {}
    }

    fn scan(&self, _: Context, _: u32) -> Option<Scan> {
        match *self {}
    }

    fn fits(&self, _: Context, _: u32) -> Result<bool, Error> {
        match *self {}
    }

    fn read(&self, _: Scan, _: u8) -> Result<Progress, Error> {
        match *self {}
    }

    fn endings(&self, _: u32) -> Arc<[Ending]> {
        match *self {}
    }

    fn pending(&self, _: u32, _: u8) -> Result<Option<u32>, Error> {
        match *self {}
    }

    fn after(&self, _: Place, _: u32) -> Result<Option<Place>, Error> {
        match *self {}
    }

    fn is_certain(&self, _: Place) -> Result<bool, Error> {
        match *self {}
    }

    fn outline(&self, _: Place, _: u32) -> Option<Outline> {
        match *self {}
    }

    fn drawn(&self, _: Outline) -> Place {
        match *self {}
    }
}
