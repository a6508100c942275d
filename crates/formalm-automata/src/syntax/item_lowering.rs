//! Lowering of unresolved items to pattern nodes, which need no flags.

use rustc_hash::FxHashMap;

use super::ast::Node;
use super::unresolved_items::{AnchorKind, CharAtom, UnresolvedItem};
use super::{Dialect, Flags, class_resolution};
use crate::charset::CharSet;
use crate::runtime::SetOnce;

/// ASCII characters matched in either case: grammars have hundreds of such keywords.
static FOLDED: [SetOnce<CharSet>; 128] = [const { SetOnce::new() }; 128];

/// Lowers items to nodes and caches the classes it has met, since folding one costs far more than
/// reading it.
pub(super) struct ItemLowering {
    dialect: Dialect,
    classes: FxHashMap<(CharAtom, Flags), CharSet>,
}

impl ItemLowering {
    pub(super) fn new(dialect: Dialect) -> ItemLowering {
        ItemLowering { dialect, classes: FxHashMap::default() }
    }

    /// Returns the node of a sequence under `flags`.
    pub(super) fn node(&mut self, items: Vec<UnresolvedItem>, flags: Flags) -> Node {
        let mut nodes: Vec<Node> = items.into_iter().map(|item| self.item(item, flags)).collect();
        match nodes.len() {
            0 => Node::Empty,
            1 => nodes.swap_remove(0),
            _ => Node::Concat(nodes),
        }
    }

    fn item(&mut self, item: UnresolvedItem, flags: Flags) -> Node {
        match item {
            UnresolvedItem::Atom(atom) => Node::Class(self.class(atom, flags)),
            UnresolvedItem::Anchor(anchor) => self.anchor(anchor, flags),
            // Its content has been flattened, so this recurses one level.
            UnresolvedItem::Plain(items) => self.node(items, flags),
            UnresolvedItem::Repeated(node)
            | UnresolvedItem::Look(node)
            | UnresolvedItem::Complete(node) => node,
        }
    }

    fn class(&mut self, atom: CharAtom, flags: Flags) -> CharSet {
        if let (CharAtom::Literal(code), false) = (&atom, flags.ignore_case) {
            return char::from_u32(*code).map(CharSet::single).unwrap_or_default();
        }
        let dialect = self.dialect;
        if let CharAtom::Literal(code @ 0..128) = atom
            && dialect.is_python()
            && flags == (Flags { ignore_case: true, ..Flags::default() })
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

    fn anchor(&mut self, anchor: AnchorKind, flags: Flags) -> Node {
        match anchor {
            AnchorKind::TextStart => Node::TextStart,
            AnchorKind::TextEnd => Node::TextEnd,
            AnchorKind::Caret if flags.multi_line => {
                Node::Alternation(vec![Node::TextStart, self.beside_line_end(false)])
            }
            AnchorKind::Caret => Node::TextStart,
            AnchorKind::Dollar if flags.multi_line => {
                Node::Alternation(vec![Node::TextEnd, self.beside_line_end(true)])
            }
            AnchorKind::Dollar if self.dialect.is_python() => before_last_newline(),
            AnchorKind::Dollar => Node::TextEnd,
            AnchorKind::Boundary(negative) => Node::WordBoundary {
                negative,
                word: class_resolution::word(self.dialect, flags),
                empty_fails: self.dialect == Dialect::Python,
            },
        }
    }

    fn beside_line_end(&self, ahead: bool) -> Node {
        let line_end = Node::Class(class_resolution::line_terminators(self.dialect));
        Node::Look { ahead, negative: false, node: Box::new(line_end) }
    }
}

/// Returns Python's `$` outside multi-line mode: at the end, or before a newline that is the last
/// character.
fn before_last_newline() -> Node {
    let newline = Node::Concat(vec![Node::Class(CharSet::single('\n')), Node::TextEnd]);
    let ends = Node::Alternation(vec![Node::TextEnd, newline]);
    Node::Look { ahead: true, negative: false, node: Box::new(ends) }
}
