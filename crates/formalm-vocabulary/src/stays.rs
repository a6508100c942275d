//! Bitmasks of "every token within this set of characters", shared by all languages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use formalm_automata::{Cover, WIDE_PARTS};
use rustc_hash::FxHashMap;

use crate::atoms::Inside;
use crate::{Classes, Words};

/// Sets kept; the oldest makes room. One takes a bit per token, and some 10 µs to make again.
const KEPT: usize = 256;

/// A set of characters, as far as bitmasks are concerned.
type Set = (u128, [Cover; WIDE_PARTS]);

/// What is kept, and in which order it came.
type Kept = (FxHashMap<Set, Arc<Stay>>, VecDeque<Set>);

/// The tokens within a set of characters.
#[derive(Debug)]
pub struct Stay {
    /// Tokens surely within the set, those that end in an unfinished character included if the
    /// set has every character beyond ASCII.
    pub words: Arc<Words>,
    /// Tokens within the set unless one of their characters beyond ASCII is missing.
    pub undecided: Vec<u32>,
}

/// The sets asked for lately.
#[derive(Debug, Default)]
pub(crate) struct Stays {
    kept: Mutex<Kept>,
}

impl Stays {
    pub(crate) fn get(&self, classes: &Classes, words: usize, set: Set) -> Arc<Stay> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stay) = kept().0.get(&set) {
            return Arc::clone(stay);
        }
        let stay = Arc::new(made(classes, words, set));
        let (known, order) = &mut *kept();
        if known.insert(set, Arc::clone(&stay)).is_none() {
            order.push_back(set);
        }
        if order.len() > KEPT
            && let Some(oldest) = order.pop_front()
        {
            known.remove(&oldest);
        }
        stay
    }
}

fn made(classes: &Classes, words: usize, (ascii, wide): Set) -> Stay {
    let inside = Inside::new(ascii, wide);
    let mut out = vec![0; words];
    let mut undecided = Vec::new();
    classes.stay(&inside, &mut out, &mut undecided);
    if wide == [Cover::Full; WIDE_PARTS] {
        for ragged in classes.all_ragged() {
            if inside.judge(ragged.before.atoms, ragged.before.ascii) == Cover::Full {
                out[ragged.token as usize >> 5] |= 1 << (ragged.token & 31);
            }
        }
    }
    Stay { words: out.into(), undecided }
}
