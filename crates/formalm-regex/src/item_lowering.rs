//! Lowering of unresolved items to pattern nodes, which need no flags.

use formalm_core::{CharSet, SetOnce};
use rustc_hash::FxHashMap;

use super::ast::PatternNode;
use super::unresolved_items::{AnchorKind, CharAtom, UnresolvedItem};
use super::{PatternDialect, PatternFlags, class_resolution};

/// ASCII characters matched in either case: grammars have hundreds of such keywords.
static FOLDED: [SetOnce<CharSet>; 128] = [const { SetOnce::new() }; 128];

/// Lowers items to nodes and caches the classes it has met, since folding one costs far more than
/// reading it.
pub(super) struct ItemLowering {
    dialect: PatternDialect,
    classes: FxHashMap<(CharAtom, PatternFlags), CharSet>,
}

impl ItemLowering {
    pub(super) fn new(dialect: PatternDialect) -> ItemLowering {
        ItemLowering { dialect, classes: FxHashMap::default() }
    }

    /// Returns the node of a sequence under `flags`.
    pub(super) fn node(&mut self, items: Vec<UnresolvedItem>, flags: PatternFlags) -> PatternNode {
        let mut nodes: Vec<PatternNode> =
            items.into_iter().map(|item| self.item(item, flags)).collect();
        match nodes.len() {
            0 => PatternNode::Empty,
            1 => nodes.swap_remove(0),
            _ => PatternNode::Concat(nodes),
        }
    }

    fn item(&mut self, item: UnresolvedItem, flags: PatternFlags) -> PatternNode {
        match item {
            UnresolvedItem::Atom(atom) => PatternNode::Class(self.class(atom, flags)),
            UnresolvedItem::Anchor(anchor) => self.anchor(anchor, flags),
            // Its content has been flattened, so this recurses one level.
            UnresolvedItem::Plain(items) => self.node(items, flags),
            UnresolvedItem::Repeated(node)
            | UnresolvedItem::Look(node)
            | UnresolvedItem::Complete(node) => node,
        }
    }

    fn class(&mut self, atom: CharAtom, flags: PatternFlags) -> CharSet {
        if let (CharAtom::Literal(code), false) = (&atom, flags.ignore_case) {
            return char::from_u32(*code).map(CharSet::single).unwrap_or_default();
        }
        let dialect = self.dialect;
        if let CharAtom::Literal(code @ 0..128) = atom
            && dialect.is_python()
            && flags == (PatternFlags { ignore_case: true, ..PatternFlags::default() })
        {
            let class = || class_resolution::resolve(&atom, dialect, flags);
            return FOLDED[code as usize].get_or_init(class).clone();
        }
        let key = (atom, flags);
        if let Some(class) = self.classes.get(&key) {
            return class.clone();
        }
        let class = class_resolution::resolve(&key.0, dialect, flags);
        self.classes.insert(key, class.clone());
        class
    }

    fn anchor(&mut self, anchor: AnchorKind, flags: PatternFlags) -> PatternNode {
        match anchor {
            AnchorKind::TextStart => PatternNode::TextStart,
            AnchorKind::TextEnd => PatternNode::TextEnd,
            AnchorKind::Caret if flags.multi_line => {
                PatternNode::Alternation(vec![PatternNode::TextStart, self.beside_line_end(false)])
            }
            AnchorKind::Caret => PatternNode::TextStart,
            AnchorKind::Dollar if flags.multi_line => {
                PatternNode::Alternation(vec![PatternNode::TextEnd, self.beside_line_end(true)])
            }
            AnchorKind::Dollar if self.dialect.is_python() => before_last_newline(),
            AnchorKind::Dollar => PatternNode::TextEnd,
            AnchorKind::Boundary(negative) => PatternNode::WordBoundary {
                negative,
                word: class_resolution::word(self.dialect, flags),
                empty_fails: self.dialect == PatternDialect::Python,
            },
        }
    }

    fn beside_line_end(&self, ahead: bool) -> PatternNode {
        let line_end = PatternNode::Class(class_resolution::line_terminators(self.dialect));
        PatternNode::Look { ahead, negative: false, node: Box::new(line_end) }
    }
}

/// Returns Python's `$` outside multi-line mode: at the end, or before a newline that is the last
/// character.
fn before_last_newline() -> PatternNode {
    let newline =
        PatternNode::Concat(vec![PatternNode::Class(CharSet::single('\n')), PatternNode::TextEnd]);
    let ends = PatternNode::Alternation(vec![PatternNode::TextEnd, newline]);
    PatternNode::Look { ahead: true, negative: false, node: Box::new(ends) }
}
