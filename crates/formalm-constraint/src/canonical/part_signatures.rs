//! What may follow a state, as far as it matters to canonical tokens: equal signatures, equal masks.
//!
//! ```text
//!  {"color": "bl│ue", "size": …      part       inside the string: by its digest alone
//!                  ↑↑↑↑              exit       byte by byte, up to where all boundaries are settled
//!                      size": …      the rest   does not matter: any text may follow
//! ```
//!
//! What may follow is read as a tree. Inside a [part](formalm_machines::PartPosition) the digest of
//! the position takes the place of the tree, and the signature of the state after the part follows.
//! Elsewhere bytes are edges. A branch ends where the boundaries of all pre-tokens that may have
//! begun before are settled (`UnsettledBoundaries`): a token never spans a
//! boundary, and behind a settled one every text may follow, so all that the rest of a branch tells
//! is that there is some text. Of its last byte only what it settles is noted, so different names
//! of properties mostly have one signature.
//!
//! A state that recurs on the way down is noted as its distance, so repetitions have signatures too.
//! A tree that is too large has none; masks are then computed in their own context.

use formalm_core::{Error, LazyDfa, ReadingHints, Renewal, StateId, keyed_hash, memory_bytes};
use formalm_machines::MaskClasses;
use formalm_vocabulary::bpe::UnsettledStates;
use rustc_hash::FxHashMap;

use super::ProductContext;
use super::product::Product;

/// Maximum number of nodes of a tree. Chosen, not measured.
const MAX_NODES: usize = 40;

/// Maximum number of edges of a tree. Chosen, not measured.
const MAX_EDGES: usize = 512;

/// A state and the unsettled states of the splitter that may have led to it.
type Node = (u32, UnsettledStates);

/// The signatures of the states of one machine.
#[derive(Debug, Default)]
pub(crate) struct PartSignatures {
    /// Trees that refer to no state above them.
    known: FxHashMap<Node, Option<u128>>,
}

memory_bytes!(PartSignatures { known });

impl PartSignatures {
    /// Returns the signature of a state, if it has one.
    pub(crate) fn of<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        state: StateId,
    ) -> Result<Option<u128>, Error> {
        let is_shared = context.machine.reads_text()
            && context.machine.is_exact()
            && context.special.is_empty()
            && context.encoder.is_merging()
            && !context.encoder.has_open_pieces()
            && context.encoder.unsettled_boundaries().settles_any(context.encoder.splitter());
        if !is_shared {
            return Ok(None);
        }
        let root = (state.number(), at_first(context));
        if let Some(&known) = self.known.get(&root) {
            return Ok(known);
        }
        if !context.machine.has_room(MAX_EDGES) {
            return Ok(None);
        }
        let (path, nodes_left, edges_left) = (Vec::new(), MAX_NODES, MAX_EDGES);
        let mut tree =
            SignatureTree { context, product, known: self, path, nodes_left, edges_left };
        let signature = tree.node(root)?.map(|node| node.hash);
        self.known.insert(root, signature);
        Ok(signature)
    }
}

/// Returns all states in which the splitter may be.
fn at_first<K: MaskClasses>(context: ProductContext<'_, K>) -> UnsettledStates {
    context.encoder.unsettled_boundaries().at_first(context.encoder.splitter())
}

/// The hash of a tree.
#[derive(Clone, Copy, Debug)]
struct TreeHash {
    hash: u128,
    /// The depth of the highest node that the tree refers to.
    refers_to: usize,
}

/// A walk along the tree of one state.
struct SignatureTree<'a, K: MaskClasses> {
    context: ProductContext<'a, K>,
    product: &'a mut Product,
    known: &'a mut PartSignatures,
    /// The nodes above the current one.
    path: Vec<Node>,
    nodes_left: usize,
    edges_left: usize,
}

impl<K: MaskClasses> SignatureTree<'_, K> {
    /// Returns the hash of the tree below a node, `None` if it has none.
    fn node(&mut self, node: Node) -> Result<Option<TreeHash>, Error> {
        if let Some(depth) = self.path.iter().position(|above| *above == node) {
            let hash = keyed_hash(&("above", self.path.len() - depth));
            return Ok(Some(TreeHash { hash, refers_to: depth }));
        }
        if let Some(&Some(hash)) = self.known.known.get(&node) {
            return Ok(Some(TreeHash { hash, refers_to: usize::MAX }));
        }
        let Some(left) = self.nodes_left.checked_sub(1) else { return Ok(None) };
        self.nodes_left = left;
        self.path.push(node);
        let made = self.expand(node);
        self.path.pop();
        let Some(mut made) = made? else { return Ok(None) };
        if made.refers_to >= self.path.len() {
            made.refers_to = usize::MAX;
            self.known.known.insert(node, Some(made.hash));
        }
        Ok(Some(made))
    }

    fn expand(&mut self, (state, unsettled): Node) -> Result<Option<TreeHash>, Error> {
        let ProductContext { keys, machine, encoder, .. } = self.context;
        let state = StateId::from_number(state);
        if let Some(part) = keys.part(state)? {
            let after = (part.after.number(), at_first(self.context));
            let Some(after) = self.node(after)? else { return Ok(None) };
            let hash = keyed_hash(&("part", part.digest, after.hash));
            return Ok(Some(TreeHash { hash, ..after }));
        }
        let live = machine.live_bytes(state)?;
        let (mut ends, mut edges) = (Vec::new(), Vec::new());
        let mut refers_to = usize::MAX;
        for byte in live.iter() {
            let Some(left) = self.edges_left.checked_sub(1) else { return Ok(None) };
            self.edges_left = left;
            let is_filtered = encoder.splitter().text_filter().is_some();
            if is_filtered && byte >= 0x80 {
                return Ok(None);
            }
            let step = encoder.unsettled_boundaries().step(encoder.splitter(), unsettled, byte);
            let Some(step) = step else { return Ok(None) };
            let Some(unsettled) = step.next else {
                if is_filtered && !self.goes_on(state, byte)? {
                    return Ok(None);
                }
                ends.push(step.settled);
                continue;
            };
            let Some(next) = machine.step(state, byte)? else { continue };
            let Some(below) = self.node((next.number(), unsettled))? else { return Ok(None) };
            refers_to = refers_to.min(below.refers_to);
            edges.push((byte, below.hash));
        }
        ends.sort_unstable();
        ends.dedup();
        let hash = keyed_hash(&("bytes", machine.is_accepting(state)?, ends, edges));
        Ok(Some(TreeHash { hash, refers_to }))
    }

    /// Returns `true` if some text that the normalizer leaves unchanged follows an ASCII byte,
    /// whatever came before: it is one even in the weakest state, and those of the splitter after the
    /// byte are open.
    fn goes_on(&mut self, state: StateId, byte: u8) -> Result<bool, Error> {
        let context = self.context;
        let start = context.encoder.splitter().start().weakest();
        let Some(next) = context.machine.step(state, byte)? else { return Ok(false) };
        if !context.is_open(start) {
            return Ok(false);
        }
        let product_state = self.product.intern(context, next, start)?;
        let product_state = self.product.common(context, product_state)?;
        Ok(self.product.is_productive(context, product_state)?
            && self.product.undecided_count() == 0)
    }
}
