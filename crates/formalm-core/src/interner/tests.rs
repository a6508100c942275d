//! The tables agree with linear lists.

use std::hash::Hash;

use proptest::prelude::*;

use super::*;

/// An entry type with many hash collisions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CollidingEntry(u8);

impl Hash for CollidingEntry {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.0 / 16).hash(state);
    }
}

proptest! {
    #[test]
    fn an_interner_agrees_with_a_linear_list(
        steps in proptest::collection::vec((any::<u8>(), 0u8..20), 0..400),
    ) {
        let mut table = Interner::default();
        let mut list: Vec<CollidingEntry> = Vec::new();
        for (entry, what) in steps {
            let entry = CollidingEntry(entry);
            match what {
                0 => {
                    let length = list.len() * usize::from(entry.0) / 256;
                    table.truncate(length);
                    list.truncate(length);
                }
                1 if entry.0 < 20 => {
                    table.clear();
                    list.clear();
                }
                _ => {
                    let known = list.iter().position(|one| *one == entry);
                    prop_assert_eq!(table.find(&entry), known.map(|at| at as u32));
                    let at = known.unwrap_or_else(|| {
                        list.push(entry.clone());
                        list.len() - 1
                    });
                    prop_assert_eq!(table.intern(entry), at as u32);
                }
            }
            prop_assert_eq!(table.len(), list.len());
            for (at, one) in list.iter().enumerate() {
                prop_assert_eq!(table.find(one), Some(at as u32));
                prop_assert_eq!(table.get(at as u32), one);
            }
        }
    }

    #[test]
    fn a_map_returns_the_last_value_of_each_key(
        steps in proptest::collection::vec((any::<u8>(), any::<u32>()), 0..400),
    ) {
        let mut map = CompactMap::default();
        let mut all = std::collections::HashMap::new();
        for (key, value) in steps {
            map.insert(CollidingEntry(key), value);
            all.insert(key, value);
        }
        for key in 0..=255 {
            prop_assert_eq!(map.get(&CollidingEntry(key)), all.get(&key));
        }
    }
}
