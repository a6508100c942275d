//! Bitmasks of "every token within this set of characters", shared by all languages.

use std::collections::VecDeque;
use std::sync::Arc;

use formalm_automata::{CharSet, Cover, Lock, WIDE_PARTS};
use rustc_hash::FxHashMap;

use crate::char_profile::Inside;
use crate::token_bytes::Tokens;
use crate::{Classes, Words};

/// Sets kept; the oldest makes room. One takes a bit per token, and some 10 µs to make again.
const KEPT: usize = 256;

/// A set of characters: its ASCII part, how much it has of each part beyond, and which characters
/// these are where that does not tell.
type Set = (u128, [Cover; WIDE_PARTS], Option<CharSet>);

/// What is kept, and in which order it came.
type Kept = (FxHashMap<Set, Arc<Words>>, VecDeque<Set>);

/// The sets asked for lately.
#[derive(Debug, Default)]
pub(crate) struct Stays {
    kept: Lock<Kept>,
}

impl Stays {
    /// The tokens of whole characters within a set, and those that end in an unfinished one if
    /// the set has every character beyond ASCII.
    pub(crate) fn get(
        &self,
        tables: (&Tokens, &Classes),
        ascii: u128,
        wide: [Cover; WIDE_PARTS],
        class: &CharSet,
    ) -> Arc<Words> {
        let set = (ascii, wide, wide.contains(&Cover::Partial).then(|| class.clone()));
        let kept = || self.kept.lock();
        if let Some(stay) = kept().0.get(&set) {
            return Arc::clone(stay);
        }
        let stay: Arc<Words> = made(tables, &set).into();
        let (known, order) = &mut *kept();
        if known.insert(set.clone(), Arc::clone(&stay)).is_none() {
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

fn made((tokens, classes): (&Tokens, &Classes), (ascii, wide, class): &Set) -> Vec<u32> {
    let inside = Inside::new(*ascii, *wide);
    let mut out = vec![0; tokens.len().div_ceil(32)];
    let mut undecided = Vec::new();
    classes.stay(&inside, &mut out, &mut undecided);
    let within = |token: u32| {
        let text = tokens.get(token).and_then(|bytes| std::str::from_utf8(bytes).ok());
        let mut wide = text.unwrap_or_default().chars().filter(|character| !character.is_ascii());
        wide.all(|character| class.as_ref().is_some_and(|class| class.contains(character)))
    };
    let mut set = |token: u32| out[token as usize >> 5] |= 1 << (token & 31);
    undecided.into_iter().filter(|&token| within(token)).for_each(&mut set);
    if *wide == [Cover::Full; WIDE_PARTS] {
        for ragged in classes.all_ragged() {
            if inside.judge(ragged.before.atoms, ragged.before.ascii) == Cover::Full {
                set(ragged.token);
            }
        }
    }
    out
}
