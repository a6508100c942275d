//! Unigram tokenizers: the *canonical* tokens of a string are its segmentation of highest score.
//!
//! ```text
//!  read so far            t h e r | e          | = end of the last token, position p
//!  open pieces                r ───┐           starts i < p whose text up to p begins a longer piece:
//!                         her ─────┤           pairs (trie node, best score up to i)
//!                                  ▼
//!  next token allowed iff no open piece, completed inside it, leads to a better segmentation
//! ```
//!
//! Tokenizers compute, from left to right, the best score up to each character and the start of the
//! last piece of the best segmentation. A token sequence is canonical iff every token is the last
//! piece of the best segmentation up to its own end. Nothing after the token matters, so every
//! prefix of a canonical sequence is canonical.
//!
//! What follows depends on the *open pieces* alone ([`OpenPieces`]). A pair is dropped when no
//! completion of it can beat the segmentation through `p`; the test is exact
//! (`PieceTrie::best_overlap`).
//!
//! Scores are added as the tokenizer's library adds them (`ScoreArithmetic`). Where its sums are
//! exact, the scores of a state are relative to `p`, and equal states recur. Where they are rounded,
//! ties are decided by all text before them, so states hold the library's own sums.

mod best_path;
mod boundary_leads;
mod crossing_tokens;
mod open_pieces;
mod piece_ends;
mod piece_trie;
#[cfg(test)]
mod random_model_tests;

pub(crate) use best_path::UnigramModel;
pub use boundary_leads::BoundaryLeads;
pub use open_pieces::{OpenPieces, OpenPiecesTable};
pub use piece_ends::PieceEnds;
pub(crate) use piece_trie::{PieceTrie, ScoreArithmetic, UnigramPiece};
