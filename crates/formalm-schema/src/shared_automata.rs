//! A process-wide cache of string automata: patterns and formats recur from one schema to the next.
//!
//! A cached automaton is identified by a hash of what it accepts, and so are its states, for
//! whatever is cached per vocabulary. Automata only grow lazily, so sharing never changes a result.
//! An automaton that has grown large is no longer handed out; only the schemas that hold it keep
//! it.

use std::sync::Arc;

use formalm_automata::Automaton;
use formalm_core::{Error, ForkSafeMutex, LazyDfa, LruCache, keyed_hash, process_fork::PerProcess};

/// Maximum number of cached automata; the least recently used one is evicted. Chosen, not measured.
const MAX_AUTOMATA: usize = 64;

/// Memory in bytes above which an automaton is not cached or handed out. Patterns that count words
/// take 0.3 to 0.9 MB; the second schema with one then costs 0.3 ms instead of 3.
const MAX_AUTOMATON_BYTES: usize = 1 << 20;

/// Maximum length of a description, in bytes. Longer ones describe enumerations, which do not
/// recur. Chosen, not measured.
const MAX_DESCRIPTION_LEN: usize = 8 << 10;

/// The cache, by the fingerprint of the language.
type AutomatonCache = ForkSafeMutex<LruCache<u128, Arc<Automaton>, MAX_AUTOMATA>>;

/// A forked child starts with an empty cache: another thread of the parent may have held the lock
/// at the fork.
static CACHE: PerProcess<AutomatonCache> = PerProcess::new();

/// A fingerprint of the language that an automaton accepts. Its size does not depend on the
/// description, which would double with each level of formulas that share operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LanguageDescription {
    /// 128 bits, keyed per process, so that nobody can construct collisions.
    hash: u128,
    /// Approximate length of the written-out description, in bytes; saturates.
    length: usize,
}

impl LanguageDescription {
    /// Describes a language by a string.
    pub(crate) fn from_text(text: &str) -> LanguageDescription {
        LanguageDescription { hash: keyed_hash(text), length: text.len() }
    }

    /// Describes the combination of languages by a commutative connective.
    pub(crate) fn from_parts(
        mark: &str,
        mut parts: Vec<LanguageDescription>,
    ) -> LanguageDescription {
        parts.sort_unstable();
        let length = parts.iter().fold(mark.len(), |all, one| all.saturating_add(one.length));
        LanguageDescription { hash: keyed_hash(&(mark, parts)), length }
    }
}

/// Returns the automaton for a description, from the cache or made by `make` (`None` for the empty
/// language), and whether it is cached. Fails if `make` does.
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
    if made.has_many_states() || made.memory_bytes() > MAX_AUTOMATON_BYTES {
        return Ok((Some(made), false));
    }
    kept().insert(description.hash, Arc::clone(&made), 1);
    Ok((Some(made), true))
}

#[cfg(test)]
mod tests {
    use formalm_automata::Expression;

    use super::*;

    #[test]
    fn equal_descriptions_share_one_automaton() {
        let make = |text: &str| {
            let texts = Expression::literals(vec![text.as_bytes().to_vec()]);
            move || Automaton::of(&texts, formalm_automata::AutomatonLimits::default())
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
