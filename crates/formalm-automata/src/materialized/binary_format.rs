//! A binary format of DFAs: a magic label, a version, sizes, then states and edges, little-endian.

use super::{DfaEdge, InterruptCheck, MaterializedDfa};

const LABEL: &[u8; 12] = b"formalm-auto";
const VERSION: u32 = 1;
/// Bytes of an edge.
const EDGE_BYTES: usize = 12;

/// The reason why bytes are not a saved DFA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// They begin with something else.
    Label,
    /// A version that is not read here.
    Version(u32),
    /// The sizes are wrong, or a state, label or edge is not that of a minimal DFA.
    Content,
    /// The caller canceled the work.
    Interrupted,
}

impl MaterializedDfa {
    /// Returns the DFA as bytes.
    pub fn save(&self) -> Vec<u8> {
        let mut out =
            Vec::with_capacity(24 + 5 * self.state_count() + EDGE_BYTES * self.range_count());
        out.extend_from_slice(LABEL);
        for number in [VERSION, self.state_count() as u32, self.range_count() as u32] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend(self.accepting.iter().map(|&accepting| u8::from(accepting)));
        for pair in self.offsets.windows(2) {
            out.extend_from_slice(&((pair[1] - pair[0]) as u32).to_le_bytes());
        }
        for edge in &self.edges {
            for number in [edge.low, edge.high, edge.target] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        out
    }

    /// Reads the output of [`MaterializedDfa::save`]; labels must be below `labels`.
    ///
    /// # Errors
    ///
    /// [`LoadError`], unless the DFA is minimal, trimmed and canonically numbered.
    pub fn load(
        data: &[u8],
        labels: u32,
        poll: &mut InterruptCheck<'_>,
    ) -> Result<MaterializedDfa, LoadError> {
        let data = data.strip_prefix(LABEL).ok_or(LoadError::Label)?;
        let (head, data) = data.split_at_checked(12).ok_or(LoadError::Content)?;
        let head: Vec<u32> = numbers(head).collect();
        if head[0] != VERSION {
            return Err(LoadError::Version(head[0]));
        }
        let (states, edges) = (head[1] as usize, head[2] as usize);
        if states == 0 || data.len() as u64 != 5 * states as u64 + EDGE_BYTES as u64 * edges as u64
        {
            return Err(LoadError::Content);
        }
        let (accepting, data) = data.split_at(states);
        let (degrees, data) = data.split_at(4 * states);
        let graph = assemble(accepting, numbers(degrees), data).ok_or(LoadError::Content)?;
        let is_known = |edge: &DfaEdge| edge.high < labels && (edge.target as usize) < states;
        if !graph.edges.iter().all(is_known) || !graph.is_ordered() {
            return Err(LoadError::Content);
        }
        let minimal = graph.minimized(poll).map_err(|_| LoadError::Interrupted)?;
        if minimal == graph { Ok(graph) } else { Err(LoadError::Content) }
    }

    /// Returns `true` if the edges of every state are ascending and disjoint.
    fn is_ordered(&self) -> bool {
        (0..self.state_count() as u32).all(|state| {
            let edges = self.edges(state);
            edges.iter().all(|edge| edge.low <= edge.high)
                && edges.windows(2).all(|pair| pair[0].high < pair[1].low)
        })
    }
}

/// Assembles a DFA from accepting flags, edges per state, and edges; `None` if they are
/// inconsistent.
fn assemble(
    flags: &[u8],
    degrees: impl Iterator<Item = u32>,
    edges: &[u8],
) -> Option<MaterializedDfa> {
    if flags.iter().any(|&flag| flag > 1) {
        return None;
    }
    let accepting = flags.iter().map(|&flag| flag == 1).collect();
    let mut offsets = vec![0usize];
    let mut end = 0usize;
    for degree in degrees {
        end = end.checked_add(degree as usize)?;
        offsets.push(end);
    }
    let numbers: Vec<u32> = numbers(edges).collect();
    let edge = |part: &[u32]| DfaEdge { low: part[0], high: part[1], target: part[2] };
    let edges: Vec<DfaEdge> = numbers.chunks_exact(3).map(edge).collect();
    (end == edges.len()).then_some(MaterializedDfa { accepting, offsets, edges })
}

fn numbers(data: &[u8]) -> impl Iterator<Item = u32> + '_ {
    data.chunks_exact(4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}
