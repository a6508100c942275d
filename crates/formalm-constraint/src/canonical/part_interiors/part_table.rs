//! What a part reads on from a position, as a minimal automaton, and its name.
//!
//! ```text
//!  a string after 20:   ─0-9─► ─0-9─► ─-─► … ─"─► the end      a string may end after its quote only
//!  a number after 12:   ─0-9─►○  ─.─► …                        a number may end before any byte that it
//!                                                              does not read (○)
//! ```
//!
//! The automaton is read off the machine of the language itself: inside the part every step leads to
//! another position of the same part, or to the state after it. Everything is checked on the way, so
//! the automaton and the state after the part together are what the machine reads. A part for which
//! that does not hold, for example because a repetition is followed by what it could also read, has
//! no table.

use std::collections::VecDeque;
use std::sync::Arc;

use formalm_core::{ByteSet, Error, LazyDfa, ReadingHints, Renewal, SetOnce, StateId, digest};
use formalm_machines::MaskClasses;
use rustc_hash::FxHashMap;

use crate::canonical::ProductContext;

/// Maximum number of positions of a part that is read for a mask. To find that there are more than
/// 512 takes 4 ms, which no mask is worth.
const MAX_POSITIONS: usize = 128;

/// Number of positions that are read to prepare a part. An e-mail address has 336, and a time of day
/// thousands, because leap seconds depend on the offset.
const MAX_PREPARED_POSITIONS: usize = 4096;

/// Number of bytes up to which each is read by itself. Chosen, not measured.
const MAX_SINGLE_BYTES: usize = 48;

/// The target of an edge to the state after the part.
pub(super) const END: u32 = u32::MAX;

/// Stands for a byte that is not read.
const DEAD: u32 = u32::MAX - 1;

/// Edges by ascending ranges of bytes: first byte, last byte, target.
type Edges = Box<[(u8, u8, u32)]>;

/// Positions with equal futures.
#[derive(Clone, Debug)]
struct PartClass {
    /// `true` if the part may end here, before any byte that it does not read.
    may_end: bool,
    edges: Edges,
    /// `true` if the position was left unread. It is alone in its class.
    is_unread: bool,
}

/// The minimal automaton of a part.
#[derive(Debug)]
pub(crate) struct PartTable {
    classes: Vec<PartClass>,
    names: Vec<SetOnce<u128>>,
}

/// A table, and the class of a position.
pub(crate) type PartPlace = (Arc<PartTable>, u32);

/// The result of reading a part.
#[derive(Debug)]
pub(crate) enum Explored {
    Part(ExploredPart),
    /// There is no table. Listed are the digests of positions of which the same is assumed.
    Nothing(Vec<u128>),
}

/// The table of a part, and its positions.
#[derive(Debug)]
pub(crate) struct ExploredPart {
    pub(crate) table: Arc<PartTable>,
    /// The digests of the positions that the machine names, and the classes of these.
    pub(crate) classes: Vec<(u128, u32)>,
    /// `true` if the table holds wherever the machine names these digests: the part reads its own
    /// last byte, so that nothing after it can be mistaken for the part.
    pub(crate) is_delimited: bool,
}

impl PartTable {
    fn new(classes: Vec<PartClass>) -> PartTable {
        let names = classes.iter().map(|_| SetOnce::new()).collect();
        PartTable { classes, names }
    }

    /// Returns the class, or [`END`], after a byte.
    pub(super) fn step(&self, class: u32, byte: u8) -> Option<u32> {
        let edges = &self.classes[class as usize].edges;
        let at = edges.partition_point(|edge| edge.1 < byte);
        edges.get(at).filter(|edge| edge.0 <= byte).map(|edge| edge.2)
    }

    /// Returns `true` if the part may end in a class, before any byte that it does not read.
    pub(crate) fn may_end(&self, class: u32) -> bool {
        self.classes[class as usize].may_end
    }

    /// Returns `true` if a class was left unread.
    pub(super) fn is_unread(&self, class: u32) -> bool {
        self.classes[class as usize].is_unread
    }

    /// Returns the bytes that a class reads.
    pub(crate) fn bytes(&self, class: u32) -> ByteSet {
        let mut bytes = ByteSet::default();
        for &(low, high, _) in &self.classes[class as usize].edges {
            (low..=high).for_each(|byte| bytes.insert(byte));
        }
        bytes
    }

    /// Returns the classes from which text of some bytes leads to an end of the part.
    pub(super) fn ending_with(&self, bytes: ByteSet) -> Vec<bool> {
        let mut ends: Vec<bool> = self.classes.iter().map(|class| class.may_end).collect();
        loop {
            let reads_on = |&(low, high, target): &(u8, u8, u32)| {
                (target == END || ends[target as usize])
                    && (low..=high).any(|byte| bytes.contains(byte))
            };
            let more = |class: &u32| {
                !ends[*class as usize] && self.classes[*class as usize].edges.iter().any(reads_on)
            };
            let more: Vec<u32> = (0..self.classes.len() as u32).filter(more).collect();
            if more.is_empty() {
                return ends;
            }
            more.into_iter().for_each(|class| ends[class as usize] = true);
        }
    }

    /// Returns the name of what is read on from a class.
    pub(crate) fn name(&self, class: u32) -> u128 {
        *self.names[class as usize].get_or_init(|| {
            // Breadth-first numbers are canonical.
            let mut numbers: FxHashMap<u32, u32> = FxHashMap::from_iter([(class, 0)]);
            let mut order = vec![class];
            let mut description = Vec::new();
            let mut at = 0;
            while let Some(&here) = order.get(at) {
                let PartClass { may_end, edges, .. } = &self.classes[here as usize];
                description.push(u8::from(*may_end));
                description.extend_from_slice(&(edges.len() as u32).to_le_bytes());
                for &(low, high, target) in edges {
                    let number = if target == END {
                        END
                    } else {
                        *numbers.entry(target).or_insert_with(|| {
                            order.push(target);
                            order.len() as u32 - 1
                        })
                    };
                    description.extend_from_slice(&[low, high]);
                    description.extend_from_slice(&number.to_le_bytes());
                }
                at += 1;
            }
            digest(&description)
        })
    }

    /// Returns the approximate memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let edges: usize = self.classes.iter().map(|class| 12 * class.edges.len()).sum();
        edges + self.classes.len() * (size_of::<PartClass>() + 32)
    }
}

/// A part of which the positions are named by the machine, see `MemberEnds::part_name`.
#[derive(Debug)]
pub(crate) struct NamedPart {
    pub(crate) table: Arc<PartTable>,
    /// The class of the state.
    pub(crate) class: u32,
    /// The names of each class.
    pub(crate) names: Vec<Vec<u128>>,
}

/// Reads the table of the part that a state is inside of, as far as there is room. Returns `None` if
/// the machine does not name its positions.
pub(crate) fn explore_named<K: MaskClasses>(
    context: ProductContext<'_, K>,
    state: StateId,
) -> Result<Option<NamedPart>, Error> {
    if context.keys.part_name(state)?.is_none() {
        return Ok(None);
    }
    let Some(mut walk) = PartWalk::new(context, state)? else { return Ok(None) };
    let mut read: Vec<Option<PartClass>> = vec![None];
    // Positions that several lead to, and what follows them, are read before the others.
    let (mut first, mut others) = (VecDeque::new(), VecDeque::from([0]));
    for _ in 0..MAX_PREPARED_POSITIONS {
        let next = first.pop_front().map(|at| (at, true));
        let Some((at, is_first)) = next.or_else(|| others.pop_front().map(|at| (at, false))) else {
            break;
        };
        if read[at].is_some() {
            continue;
        }
        if !context.machine.has_room(walk.positions.len()) {
            break;
        }
        let known = walk.positions.len();
        let Some(class) = walk.read(walk.positions[at])? else { return Ok(None) };
        read.resize_with(walk.positions.len(), || None);
        let queue = if is_first { &mut first } else { &mut others };
        queue.extend(known..read.len());
        let again = class.edges.iter().map(|edge| edge.2 as usize);
        first.extend(again.filter(|&next| next < known && read[next].is_none()));
        read[at] = Some(class);
    }
    let unread = || PartClass { may_end: false, edges: Edges::default(), is_unread: true };
    let classes: Vec<PartClass> =
        read.into_iter().map(|class| class.unwrap_or_else(unread)).collect();
    let (classes, class_of) = minimized(&classes);
    let mut names = vec![Vec::new(); classes.len()];
    for (position, &class) in walk.positions.iter().zip(&class_of) {
        let is_named = position.digest.is_some() && !classes[class as usize].is_unread;
        if is_named && let Some(name) = context.keys.part_name(position.state)? {
            names[class as usize].push(name);
        }
    }
    let class = class_of.first().copied().unwrap_or(0);
    let table = Arc::new(PartTable::new(classes));
    Ok(Some(NamedPart { table, class, names }))
}

/// Reads the table of the part that a state is inside of.
pub(crate) fn explore<K: MaskClasses>(
    context: ProductContext<'_, K>,
    state: StateId,
) -> Result<Explored, Error> {
    let Some(mut walk) = PartWalk::new(context, state)? else {
        return Ok(Explored::Nothing(Vec::new()));
    };
    let mut classes = Vec::new();
    while let Some(&position) = walk.positions.get(classes.len()) {
        let is_large = walk.positions.len() > MAX_POSITIONS;
        if is_large || !context.machine.has_room(walk.positions.len()) {
            return Ok(Explored::Nothing(walk.digests(classes.len() + 1)));
        }
        let Some(class) = walk.read(position)? else {
            return Ok(Explored::Nothing(Vec::new()));
        };
        classes.push(class);
    }
    let is_delimited = classes.iter().all(|class| !class.may_end);
    let (classes, class_of) = minimized(&classes);
    let named = walk.positions.iter().zip(class_of);
    let named = named.filter_map(|(position, class)| Some((position.digest?, class)));
    Ok(Explored::Part(ExploredPart {
        table: Arc::new(PartTable::new(classes)),
        classes: named.collect(),
        is_delimited,
    }))
}

/// A position inside a part.
#[derive(Clone, Copy, Debug)]
struct WalkPosition {
    state: StateId,
    /// The machine's own digest; `None` inside a character.
    digest: Option<u128>,
    /// Number of bytes of the character read.
    inside: u8,
}

/// A walk along the positions of a part.
struct PartWalk<'a, K: MaskClasses> {
    context: ProductContext<'a, K>,
    after: StateId,
    live_after: ByteSet,
    ends_after: bool,
    positions: Vec<WalkPosition>,
    index: FxHashMap<u32, u32>,
}

impl<'a, K: MaskClasses> PartWalk<'a, K> {
    /// Returns a walk from a state inside a part.
    fn new(
        context: ProductContext<'a, K>,
        state: StateId,
    ) -> Result<Option<PartWalk<'a, K>>, Error> {
        let Some(part) = context.keys.part(state)? else { return Ok(None) };
        let mut walk = PartWalk {
            context,
            after: part.after,
            live_after: context.machine.live_bytes(part.after)?,
            ends_after: context.machine.is_accepting(part.after)?,
            positions: Vec::new(),
            index: FxHashMap::default(),
        };
        walk.position(state, Some(part.digest), 0);
        Ok(Some(walk))
    }

    fn position(&mut self, state: StateId, digest: Option<u128>, inside: u8) -> u32 {
        let PartWalk { positions, index, .. } = self;
        *index.entry(state.number()).or_insert_with(|| {
            positions.push(WalkPosition { state, digest, inside });
            positions.len() as u32 - 1
        })
    }

    /// Returns the digests of the first positions.
    fn digests(&self, count: usize) -> Vec<u128> {
        self.positions.iter().take(count).filter_map(|position| position.digest).collect()
    }

    /// Returns where a byte leads if that is inside the part or right after it.
    fn target(
        &mut self,
        from: WalkPosition,
        next: StateId,
        byte: u8,
    ) -> Result<Option<u32>, Error> {
        if next == self.after {
            return Ok(Some(END));
        }
        if let Some(part) = self.context.keys.part(next)? {
            let is_same = part.after == self.after;
            return Ok(is_same.then(|| self.position(next, Some(part.digest), 0)));
        }
        // A machine need not name the positions inside a character.
        let least = if from.inside == 0 { 0xc2 } else { 0x80 };
        let is_inside = from.inside < 3 && byte >= least;
        let is_exit = self.context.machine.step(self.after, byte)? == Some(next);
        Ok((is_inside && !is_exit).then(|| self.position(next, None, from.inside + 1)))
    }

    /// Returns bytes that lead to equal states, in groups. Few bytes are read one by one.
    fn byte_classes(&self, state: StateId) -> Result<Vec<ByteSet>, Error> {
        let live = self.context.machine.live_bytes(state)?;
        if live.len() > MAX_SINGLE_BYTES {
            return self.context.machine.byte_classes(state);
        }
        let single = |byte| {
            let mut class = ByteSet::default();
            class.insert(byte);
            class
        };
        Ok(live.iter().map(single).collect())
    }

    /// Reads a position. Returns `None` if something other than the part, and then what is after it,
    /// may follow.
    fn read(&mut self, here: WalkPosition) -> Result<Option<PartClass>, Error> {
        let machine = self.context.machine;
        let mut targets = [DEAD; 256];
        let mut exits = ByteSet::default();
        for class in self.byte_classes(here.state)? {
            let Some(first) = class.iter().next() else { continue };
            let Some(next) = machine.step(here.state, first)? else { continue };
            match self.target(here, next, first)? {
                Some(target) => class.iter().for_each(|byte| targets[usize::from(byte)] = target),
                None => exits = exits.union(class),
            }
        }
        let is_accepting = machine.is_accepting(here.state)?;
        let may_end = is_accepting || !exits.is_empty();
        if may_end {
            let read_only_after =
                self.live_after.iter().filter(|&byte| targets[usize::from(byte)] == DEAD);
            let read_only_after = read_only_after.fold(ByteSet::default(), |mut bytes, byte| {
                bytes.insert(byte);
                bytes
            });
            let is_exit = |byte| {
                Ok::<_, Error>(machine.step(here.state, byte)? == machine.step(self.after, byte)?)
            };
            if here.digest.is_none() || is_accepting != self.ends_after || exits != read_only_after
            {
                return Ok(None);
            }
            for byte in exits.iter() {
                if !is_exit(byte)? {
                    return Ok(None);
                }
            }
        }
        Ok(Some(PartClass { may_end, edges: ranges(&targets), is_unread: false }))
    }
}

/// Returns the bytes that are read, in ranges of one target.
fn ranges(targets: &[u32; 256]) -> Edges {
    let mut edges: Vec<(u8, u8, u32)> = Vec::new();
    for byte in 0..=255u8 {
        let target = targets[usize::from(byte)];
        match edges.last_mut() {
            Some((_, high, last)) if *last == target && *high + 1 == byte => *high = byte,
            _ if target == DEAD => {}
            _ => edges.push((byte, byte, target)),
        }
    }
    edges.into()
}

/// Merges positions with equal futures. Returns the classes, and the class of each position.
fn minimized(positions: &[PartClass]) -> (Vec<PartClass>, Vec<u32>) {
    let mut count = 0;
    let mut class_of: Vec<u32> = Vec::with_capacity(positions.len());
    for position in positions {
        count += usize::from(position.is_unread);
        class_of.push(if position.is_unread { count as u32 } else { 0 });
    }
    loop {
        let mut known: FxHashMap<(u32, bool, Edges), u32> = FxHashMap::default();
        let refined: Vec<u32> = positions
            .iter()
            .zip(&class_of)
            .map(|(position, &class)| {
                let next = known.len() as u32;
                let edges = renamed(&position.edges, &class_of);
                *known.entry((class, position.may_end, edges)).or_insert(next)
            })
            .collect();
        let (before, now) = (count, known.len());
        (class_of, count) = (refined, now);
        if now == before {
            break;
        }
    }
    let mut classes: Vec<PartClass> = Vec::with_capacity(count);
    for (position, &class) in positions.iter().zip(&class_of) {
        if class as usize == classes.len() {
            let edges = renamed(&position.edges, &class_of);
            classes.push(PartClass { edges, ..*position });
        }
    }
    (classes, class_of)
}

/// Returns edges to classes, adjacent ranges merged.
fn renamed(edges: &Edges, class_of: &[u32]) -> Edges {
    let mut merged: Vec<(u8, u8, u32)> = Vec::with_capacity(edges.len());
    for &(low, high, target) in edges {
        let target = if target == END { END } else { class_of[target as usize] };
        match merged.last_mut() {
            Some(last) if last.2 == target && last.1 + 1 == low => last.1 = high,
            _ => merged.push((low, high, target)),
        }
    }
    merged.into()
}
