//! Extraction of one tree from a parse forest, iteratively and in postorder.

use formalm_core::Error;
use num_bigint::BigUint;

use super::TreeParser;
use super::earley_chart::ChartChild;
use super::earley_productions::StepBudget;
use super::parse_forest::ParseForest;
use crate::trees::tree_shape::RuleKind;

/// The kind of a tree node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeNodeKind {
    /// A rule, and the index of its alternative.
    Rule(usize, usize),
    /// A lexeme of a terminal.
    Lexeme(usize),
    /// A placeholder for an absent optional part.
    Placeholder,
}

/// A node or leaf of a tree.
#[derive(Clone, Debug)]
pub struct TreeNode {
    /// The kind of the node.
    pub kind: TreeNodeKind,
    /// Number of children: the preceding branches, not counting their own children.
    pub children: usize,
    /// The byte range in the input.
    pub span: (usize, usize),
    /// `true` if trees show it.
    pub is_shown: bool,
    /// Number of trees of this node over this range; `None` if infinite.
    pub tree_count: Option<BigUint>,
}

/// A node whose children are being visited.
struct OpenNode {
    node: u32,
    /// Last dot position of its production.
    position: u32,
    children: Vec<ChartChild>,
    next: usize,
    written: usize,
    kept: usize,
    start: Option<usize>,
}

/// Steps charged for each child of an empty node. The chart holds an empty node once, but a tree
/// may repeat it exponentially often. Chosen, not measured.
const EMPTY_NODE_STEPS: usize = 32;

/// Builds the chosen tree of a forest.
pub(super) fn build_tree(
    trees: &TreeParser,
    forest: &ParseForest<'_>,
    whole: bool,
    steps: &mut StepBudget<'_, '_>,
) -> Result<Vec<TreeNode>, Error> {
    let mut writer = TreeWriter { trees, forest, whole, branches: Vec::new(), end: 0 };
    let mut path = vec![writer.open_node(forest.root)];
    while let Some(open_node) = path.last_mut() {
        match open_node.children.get(open_node.next).copied() {
            Some(ChartChild::Node(node)) => {
                open_node.next += 1;
                path.push(writer.open_node(node));
            }
            Some(ChartChild::Lexeme(lexeme)) => {
                open_node.next += 1;
                writer.lexeme(lexeme, open_node);
            }
            None => {
                let Some(done) = path.pop() else { break };
                steps.spend(if done.start.is_none() {
                    EMPTY_NODE_STEPS * done.children.len()
                } else {
                    1
                })?;
                let is_top = path.len() == 1;
                writer.close_node(done, path.last_mut(), is_top);
            }
        }
    }
    Ok(writer.branches)
}

struct TreeWriter<'a> {
    trees: &'a TreeParser,
    forest: &'a ParseForest<'a>,
    whole: bool,
    branches: Vec<TreeNode>,
    /// The end of the last lexeme.
    end: usize,
}

impl TreeWriter<'_> {
    fn open_node(&self, node: u32) -> OpenNode {
        let (position, children) = self.forest.choose_derivation(node);
        OpenNode { node, position, children, next: 0, written: 0, kept: 0, start: None }
    }

    fn rule(&self, node: u32) -> Option<usize> {
        let grammar = &self.trees.shaped.grammar;
        let symbol = self.forest.chart.nodes[node as usize].symbol as usize;
        symbol.checked_sub(grammar.terminals.len()).filter(|&rule| rule < grammar.rules.len())
    }

    fn lexeme(&mut self, lexeme: u32, open_node: &mut OpenNode) {
        let one = self.forest.chart.lexemes[lexeme as usize];
        if one.terminal == self.trees.productions.trail {
            return;
        }
        self.end = one.end;
        open_node.start.get_or_insert(one.start);
        let rule = self.rule(open_node.node).map(|rule| self.trees.shaped.tree_shapes[rule].kind);
        let kept = rule != Some(RuleKind::OmittedLexeme);
        if kept || self.whole {
            open_node.written += 1;
            open_node.kept += usize::from(kept);
            self.branches.push(TreeNode {
                kind: TreeNodeKind::Lexeme(one.terminal as usize),
                children: 0,
                span: (one.start, one.end),
                is_shown: kept,
                tree_count: Some(1u32.into()),
            });
        }
    }

    /// Returns `true` if the last shown part is a rule, as the top of a tree must be.
    fn last_is_rule(&self) -> bool {
        let last = self.branches.iter().rev().find(|one| one.is_shown);
        last.is_some_and(|one| matches!(one.kind, TreeNodeKind::Rule(..)))
    }

    /// Emits a node after its children, or passes its children to the parent.
    fn close_node(&mut self, done: OpenNode, above: Option<&mut OpenNode>, is_top: bool) {
        let Some(above) = above else { return };
        if let Some(start) = done.start {
            above.start.get_or_insert(start);
        }
        let rule = self.rule(done.node);
        let shown = rule.map(|rule| &self.trees.shaped.tree_shapes[rule]);
        let (Some(rule), Some(shown)) = (rule, shown) else {
            above.written += done.written;
            above.kept += done.kept;
            return;
        };
        match shown.kind {
            RuleKind::OmittedLexeme => {
                above.written += done.written;
                return;
            }
            RuleKind::Placeholder(size) => {
                let span = (self.end, self.end);
                let nothing = TreeNode {
                    kind: TreeNodeKind::Placeholder,
                    children: 0,
                    span,
                    is_shown: true,
                    tree_count: None,
                };
                self.branches.extend((0..size).map(|_| nothing.clone()));
                above.written += size as usize;
                above.kept += size as usize;
                return;
            }
            RuleKind::Rule => {}
        }
        let alternative = self.trees.productions.alternative[done.position as usize] as usize;
        let named = shown.aliases.get(alternative).is_some_and(Option::is_some);
        let unwrapped = shown.inlines_single_child
            && !named
            && done.kept == 1
            && (!is_top || self.last_is_rule());
        let kept = !(unwrapped || (shown.inlines_children && !is_top));
        if !kept && !self.whole {
            above.written += done.written;
            above.kept += done.kept;
            return;
        }
        above.written += 1;
        above.kept += if kept { 1 } else { done.kept };
        self.branches.push(TreeNode {
            kind: TreeNodeKind::Rule(rule, alternative),
            children: done.written,
            span: done.start.map_or((self.end, self.end), |start| (start, self.end)),
            is_shown: kept,
            tree_count: self.forest.tree_counts(done.node).cloned(),
        });
    }
}
