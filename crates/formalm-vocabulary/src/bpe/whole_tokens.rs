//! Pieces that a tokenizer takes whole although merging would make something else of them.
//!
//! Such a token stands alone in its piece, and what merging makes of its text is no piece.

use rustc_hash::{FxHashMap, FxHashSet};

/// What the tokens of the current piece have been so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path(u32);

impl Path {
    /// Nothing that any whole piece would merge to.
    pub const PLAIN: Path = Path(0);
    const BEGIN: Path = Path(1);
    pub(crate) const WHOLE: Path = Path(2);
}

/// Whole pieces by what merging makes of them.
#[derive(Debug)]
pub(crate) struct Wholes {
    steps: FxHashMap<(Path, u32), Path>,
    complete: FxHashSet<Path>,
    tokens: FxHashSet<u32>,
    /// Per token whether any of the above is about it.
    noted: Vec<bool>,
    /// What it was made from.
    list: Vec<(u32, Option<Vec<u32>>)>,
}

impl Wholes {
    /// Whole pieces, each with what merging makes of its text if that is known.
    pub(crate) fn new(list: Vec<(u32, Option<Vec<u32>>)>) -> Wholes {
        let mut wholes = Wholes {
            steps: FxHashMap::default(),
            complete: FxHashSet::default(),
            tokens: FxHashSet::default(),
            noted: Vec::new(),
            list: Vec::new(),
        };
        let mut count = 3;
        for (token, merged) in &list {
            wholes.tokens.insert(*token);
            for &noted in merged.as_deref().unwrap_or_default().iter().chain([token]) {
                let len = wholes.noted.len().max(noted as usize + 1);
                wholes.noted.resize(len, false);
                wholes.noted[noted as usize] = true;
            }
            let mut path = Path::BEGIN;
            for &token in merged.as_deref().unwrap_or_default() {
                path = *wholes.steps.entry((path, token)).or_insert_with(|| {
                    count += 1;
                    Path(count)
                });
            }
            wholes.complete.insert(path);
        }
        wholes.list = list;
        wholes
    }

    /// What it was made from.
    pub(crate) fn list(&self) -> &[(u32, Option<Vec<u32>>)] {
        &self.list
    }

    /// Whether a token is a whole piece that merging does not make.
    fn is_whole(&self, token: u32) -> bool {
        self.tokens.contains(&token)
    }

    /// Whether anything is to be said of a token.
    #[inline]
    pub(crate) fn notes(&self, token: u32) -> bool {
        self.noted.get(token as usize).is_some_and(|&noted| noted)
    }

    /// After a token, which begins a piece or not; none if it may not stand here.
    pub(crate) fn step(&self, path: Path, token: u32, begins: bool) -> Option<Path> {
        if !self.notes(token) {
            return (path != Path::WHOLE || begins).then_some(Path::PLAIN);
        }
        match begins {
            true if self.is_whole(token) => Some(Path::WHOLE),
            false if self.is_whole(token) || path == Path::WHOLE => None,
            _ => {
                let from = if begins { Path::BEGIN } else { path };
                Some(self.steps.get(&(from, token)).copied().unwrap_or(Path::PLAIN))
            }
        }
    }

    /// Whether the piece may end here.
    pub(crate) fn may_end(&self, path: Path) -> bool {
        path == Path::PLAIN || !self.complete.contains(&path)
    }
}
