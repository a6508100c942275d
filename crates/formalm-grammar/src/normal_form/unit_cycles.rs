//! Unit cycles: symbols that derive each other alone are merged.

use crate::normal_form::lowering::Production;

/// A symbol's state in Tarjan's algorithm.
#[derive(Clone, Copy, Default)]
struct TarjanVisit {
    /// Order of discovery from 1; 0 is undiscovered.
    order: u32,
    low: u32,
    open: bool,
}

/// Returns per symbol the representative of its unit cycle. A production is a unit edge to a symbol
/// if its other symbols are all nullable. Symbols on a cycle derive the same strings.
pub(crate) fn merge_unit_cycles(
    productions: &[Production],
    nullable: &[bool],
    terminals: u32,
    symbols: u32,
) -> Vec<u32> {
    let edges = edges(productions, nullable, terminals, symbols);
    let mut merged: Vec<u32> = (0..symbols).collect();
    for members in components(&edges) {
        let Some(&first) = members.last() else { continue };
        members.iter().for_each(|&one| merged[one as usize] = first);
    }
    merged
}

/// Returns the strongly connected components of a graph, successors first (Tarjan's algorithm). The
/// last element of a component is the one discovered first.
pub(crate) fn components(edges: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut found = Vec::new();
    let mut visits = vec![TarjanVisit::default(); edges.len()];
    let mut order = 0;
    let mut open: Vec<u32> = Vec::new();
    let mut path: Vec<(u32, usize)> = Vec::new();
    for root in 0..edges.len() as u32 {
        if visits[root as usize].order == 0 {
            path.push((root, 0));
        }
        while let Some((symbol, at)) = path.last_mut() {
            let (here, next) = (*symbol as usize, *at);
            if next == 0 && visits[here].order == 0 {
                order += 1;
                visits[here] = TarjanVisit { order, low: order, open: true };
                open.push(here as u32);
            }
            if let Some(&to) = edges[here].get(next) {
                *at += 1;
                let seen = visits[to as usize];
                if seen.order == 0 {
                    path.push((to, 0));
                } else if seen.open {
                    visits[here].low = visits[here].low.min(seen.order);
                }
                continue;
            }
            path.pop();
            if let Some(&(above, _)) = path.last() {
                visits[above as usize].low = visits[above as usize].low.min(visits[here].low);
            }
            if visits[here].low == visits[here].order {
                let from = open.iter().rposition(|&one| one as usize == here).unwrap_or(0);
                let mut members = open.split_off(from);
                members.reverse();
                members.iter().for_each(|&one| visits[one as usize].open = false);
                found.push(members);
            }
        }
    }
    found
}

fn edges(
    productions: &[Production],
    nullable: &[bool],
    terminals: u32,
    symbols: u32,
) -> Vec<Vec<u32>> {
    let mut edges: Vec<Vec<u32>> = vec![Vec::new(); symbols as usize];
    for one in productions {
        let mut full = one.right.iter().filter(|&&symbol| !nullable[symbol as usize]);
        match (full.next(), full.next()) {
            (None, _) => edges[one.left as usize].extend_from_slice(&one.right),
            (Some(&only), None) if only >= terminals => edges[one.left as usize].push(only),
            _ => {}
        }
    }
    for list in &mut edges {
        list.sort_unstable();
        list.dedup();
    }
    edges
}
