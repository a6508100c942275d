//! Machines of texts that schemas have in common: patterns and formats recur from one to the next.
//!
//! A machine is known by what it reads; so are its states to whatever is kept beside
//! vocabularies. It only ever grows, so that sharing changes no answer; one that has grown much is
//! left to the schemas that have it.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

use formalm_automata::fork::PerProcess;
use formalm_automata::{Automaton, Error, Lock, Machine, Recent, SetOnce};

/// Machines kept; the one that was asked for longest ago makes room.
const MAX_AUTOMATA: usize = 64;

/// Bytes up to which a machine is handed out again.
const MAX_AUTOMATON_BYTES: usize = 256 << 10;

/// Longer descriptions are those of lists, which do not recur.
const MAX_DESCRIPTION_LEN: usize = 8 << 10;

type AutomatonCache = Lock<Recent<u128, Arc<Automaton>>>;

/// A child of a fork begins without any: a thread of the parent may hold the lock for ever.
static CACHE: PerProcess<AutomatonCache> = PerProcess::new();

/// What a machine reads, told apart from whatever other machines read. It does not grow with the
/// text that spells it, which doubles with each level of formulas that share their parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LanguageDescription {
    /// Of 128 bits with keys of this process, so that nobody finds two of one hash.
    hash: u128,
    /// About how long it would be, spelled out; saturates.
    length: usize,
}

impl LanguageDescription {
    /// A language that a text describes.
    pub(crate) fn from_text(text: &str) -> LanguageDescription {
        LanguageDescription { hash: keyed_hash(text), length: text.len() }
    }

    /// What a connective makes of some languages, in whatever order.
    pub(crate) fn from_parts(
        mark: &str,
        mut parts: Vec<LanguageDescription>,
    ) -> LanguageDescription {
        parts.sort_unstable();
        let length = parts.iter().fold(mark.len(), |all, one| all.saturating_add(one.length));
        LanguageDescription { hash: keyed_hash(&(mark, parts)), length }
    }
}

/// A hash of so many bits that nobody finds two entries with one: its keys are those of this process.
pub(crate) fn keyed_hash(entry: &(impl Hash + ?Sized)) -> u128 {
    static KEYS: SetOnce<[RandomState; 2]> = SetOnce::new();
    let [high, low] = KEYS.get_or_init(|| [RandomState::new(), RandomState::new()]);
    u128::from(high.hash_one(entry)) << 64 | u128::from(low.hash_one(entry))
}

/// The machine of texts that are described so: a known one, or what `make` makes of it. Whether it
/// is kept, too.
pub(crate) fn shared_automaton(
    description: LanguageDescription,
    make: impl FnOnce() -> Result<Option<Automaton>, Error>,
) -> Result<(Option<Arc<Automaton>>, bool), Error> {
    let kept = CACHE.get_or_init(AutomatonCache::default);
    let kept = || kept.lock();
    if description.length > MAX_DESCRIPTION_LEN {
        return Ok((make()?.map(Arc::new), false));
    }
    let known = kept().get(&description.hash);
    if let Some(known) = known.filter(|known| known.memory_bytes() <= MAX_AUTOMATON_BYTES) {
        return Ok((Some(known), true));
    }
    let Some(made) = make()?.map(Arc::new) else { return Ok((None, false)) };
    if made.is_unbounded() || made.memory_bytes() > MAX_AUTOMATON_BYTES {
        return Ok((Some(made), false));
    }
    let mut kept = kept();
    kept.insert(description.hash, Arc::clone(&made));
    if kept.len() > MAX_AUTOMATA {
        kept.remove_oldest();
    }
    Ok((Some(made), true))
}

#[cfg(test)]
mod tests {
    use formalm_automata::Expression;

    use super::*;

    #[test]
    fn what_is_described_alike_is_one_machine() {
        let make = |text: &str| {
            let texts = Expression::texts(vec![text.as_bytes().to_vec()]);
            move || Automaton::of(&texts, formalm_automata::Limits::default())
        };
        let (one, kept) =
            shared_automaton(LanguageDescription::from_text("a test's own"), make("a")).unwrap();
        let (other, _) =
            shared_automaton(LanguageDescription::from_text("a test's own"), make("b")).unwrap();
        assert!(kept && Arc::ptr_eq(&one.unwrap(), &other.unwrap()));
        let long = "x".repeat(MAX_DESCRIPTION_LEN + 1);
        let (one, kept) =
            shared_automaton(LanguageDescription::from_text(&long), make("a")).unwrap();
        let (other, _) =
            shared_automaton(LanguageDescription::from_text(&long), make("a")).unwrap();
        assert!(!kept && !Arc::ptr_eq(&one.unwrap(), &other.unwrap()));
        for at in 0..=MAX_AUTOMATA {
            shared_automaton(LanguageDescription::from_text(&format!("many {at}")), make("a"))
                .unwrap();
            shared_automaton(LanguageDescription::from_text("used on"), make("a")).unwrap();
        }
        let (used, _) =
            shared_automaton(LanguageDescription::from_text("used on"), make("b")).unwrap();
        let used = used.unwrap();
        assert!(used.walk(used.start(), b"a").unwrap().is_ok());
        let (other, _) =
            shared_automaton(LanguageDescription::from_text("a test's own"), make("b")).unwrap();
        let other = other.unwrap();
        assert!(other.walk(other.start(), b"b").unwrap().is_ok());
    }
}
