//! The search for completions: whether a configuration has one.
//!
//! Viability is decided in stages: by the dead-end proof, by a short search, by a short search with
//! completion bounds, and by a long search with the closest bounds. All searches are best-first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use formalm_core::{Error, Resource};
use formalm_machines::{CompletionLength, Precision};
use rustc_hash::FxHashMap;

use crate::completion::CompletionBounds;
use crate::configuration_reader::ConfigurationReader;
use crate::configurations::Configuration;
use crate::dead_end_proof::completable_stacks::CompletableStacks;
use crate::gss::stack_shortest_path::NEVER;
use crate::limits::{GrammarLimits, check};
use crate::sublanguages::Sublanguages;

/// Configurations visited before a search that assumed members of an external parser is left open.
/// Chosen, not measured.
const MAX_ASSUMED_CONFIGURATIONS: usize = 1_000;

/// Configurations visited before completion bounds are computed. Completions are usually near.
/// Chosen, not measured.
const NEAR_CONFIGURATIONS: u64 = 300;

/// The share of the allowed steps that such a short search may take: one in this many. Chosen, not
/// measured.
const NEAR_STEP_SHARE: u64 = 4;

/// The weight of a missing byte relative to a byte read. A weight above one is greedy, which
/// suffices because any completion will do. Chosen, not measured.
const MISSING_BYTE_WEIGHT: u32 = 4;

/// What is known about completions of configurations, and how to find out more.
#[derive(Debug)]
pub(crate) struct CompletionSearch {
    pub(crate) limits: GrammarLimits,
    /// Viability of configurations that a search has decided.
    pub(crate) viable: FxHashMap<Configuration, bool>,
    pub(crate) completable: CompletableStacks,
    /// Completion bounds of configurations that no proof covers, one entry per precision; built on
    /// first use.
    bounds: [Option<Box<CompletionBounds>>; 3],
    /// The precision of completion bounds; `None` if the dead-end proof decides most
    /// configurations.
    pub(crate) precision: Option<Precision>,
    /// The entries of `viable` added since the last checkpoint.
    log: Option<Vec<Configuration>>,
}

impl CompletionSearch {
    pub(crate) fn new(limits: GrammarLimits) -> CompletionSearch {
        CompletionSearch {
            limits,
            viable: FxHashMap::default(),
            completable: CompletableStacks::default(),
            bounds: [None, None, None],
            precision: None,
            log: None,
        }
    }

    /// Returns `true` if some completion exists for a configuration.
    pub(crate) fn is_viable(
        &mut self,
        configuration: Configuration,
        reader: &mut ConfigurationReader,
    ) -> Result<bool, Error> {
        let configuration = reader.after_sublanguage(configuration)?.unwrap_or(configuration);
        if self.is_viable_without_search(configuration, reader)? {
            return Ok(true);
        }
        if let Some(&viable) = self.viable.get(&configuration) {
            return Ok(viable);
        }
        let before = self.precision;
        let viable = self.decide_viability(configuration, reader);
        self.precision = before;
        viable
    }

    /// Decides viability by searches of increasing precision. Completions are usually near, and
    /// precise bounds may cost far more than a short search.
    fn decide_viability(
        &mut self,
        configuration: Configuration,
        reader: &mut ConfigurationReader,
    ) -> Result<bool, Error> {
        let max_configurations = self.limits.search;
        for precision in [None, Some(Precision::Fine)] {
            let call = reader.meter().begin_separate(self.limits.steps / NEAR_STEP_SHARE);
            let near = max_configurations.min(NEAR_CONFIGURATIONS);
            let found = self.search_with_precision(precision, configuration, near, reader);
            reader.meter().end_separate(call);
            match found {
                // A share of the allowed steps is not enough.
                Err(Error::Limit { resource: Resource::Readings | Resource::Steps, .. }) => {}
                found => return found,
            }
        }
        self.search_with_precision(
            Some(Precision::Finest),
            configuration,
            max_configurations,
            reader,
        )
    }

    fn search_with_precision(
        &mut self,
        precision: Option<Precision>,
        configuration: Configuration,
        max_configurations: u64,
        reader: &mut ConfigurationReader,
    ) -> Result<bool, Error> {
        self.precision = precision;
        let viable = match self.completion(configuration, reader)? {
            CompletionLength::Never => false,
            CompletionLength::Exactly(_) => true,
            _ => {
                return self.search_for_completion(configuration, max_configurations, reader);
            }
        };
        self.record(configuration, viable, &reader.sublanguages);
        Ok(viable)
    }

    /// Returns `true` if a configuration is viable without a search.
    fn is_viable_without_search(
        &mut self,
        configuration: Configuration,
        reader: &mut ConfigurationReader,
    ) -> Result<bool, Error> {
        let configuration = reader.after_sublanguage(configuration)?.unwrap_or(configuration);
        // The acceptance test comes second because it is slower.
        Ok(self.is_proven_viable(configuration, reader)? || reader.accepts(configuration)?)
    }

    /// Returns `true` if the dead-end proof shows that a configuration is viable.
    fn is_proven_viable(
        &mut self,
        configuration: Configuration,
        reader: &mut ConfigurationReader,
    ) -> Result<bool, Error> {
        let Configuration { lexeme, parser_state, negative_threads } = configuration;
        if configuration.is_in_sublanguage()
            || !reader.is_lexeme_safe(lexeme, negative_threads)?
            || !self.completable.is_completable_at(parser_state, reader)?
        {
            return Ok(false);
        }
        if !configuration.is_between() || reader.lexer.proof.unproven().is_empty() {
            return Ok(true);
        }
        let context = reader.context(parser_state)?;
        reader.fits_separator(context, negative_threads)
    }

    /// Searches from one configuration, nearest estimated completion first, and caches what it
    /// learns. Configurations are judged separately: only one of them is the true split of the
    /// final input.
    fn search_for_completion(
        &mut self,
        from: Configuration,
        max_configurations: u64,
        reader: &mut ConfigurationReader,
    ) -> Result<bool, Error> {
        let mode = reader.sublanguages.answers.assume_ends();
        reader.sublanguages.answers.assumed = false;
        let begins = reader.sublanguages.begin_scratch();
        let found = self.search_configurations(from, max_configurations, reader);
        if begins {
            reader.sublanguages.end_scratch();
        }
        reader.sublanguages.answers.mode = mode;
        found
    }

    fn search_configurations(
        &mut self,
        from: Configuration,
        max_configurations: u64,
        reader: &mut ConfigurationReader,
    ) -> Result<bool, Error> {
        let mut visited: Vec<(Configuration, usize)> = vec![(from, 0)];
        let mut seen: FxHashMap<Configuration, ()> = FxHashMap::from_iter([(from, ())]);
        let mut queue: BinaryHeap<(Reverse<u32>, u32, usize)> = BinaryHeap::new();
        queue.push((Reverse(0), 0, 0));
        let mut next = Vec::new();
        // Cached verdicts must not influence where a search gives up, so that answers do not depend
        // on history.
        let has_external_parsers = reader.has_external_parsers();
        while let Some((_, read, at)) = queue.pop() {
            for byte in reader.lexer.threads.representatives().to_vec() {
                next.clear();
                reader.push_successors(visited[at].0, byte, &mut next)?;
                for &configuration in &next {
                    let known = self.viable.get(&configuration).copied();
                    if (known == Some(false) && !has_external_parsers)
                        || seen.insert(configuration, ()).is_some()
                    {
                        continue;
                    }
                    visited.push((configuration, at));
                    let found = known == Some(true)
                        || self.is_viable_without_search(configuration, reader)?;
                    if found {
                        self.mark_viable(&visited, &reader.sublanguages);
                        return Ok(true);
                    }
                    if reader.sublanguages.answers.assumed
                        && visited.len() > MAX_ASSUMED_CONFIGURATIONS
                    {
                        self.record(from, true, &reader.sublanguages);
                        return Ok(true);
                    }
                    check(Resource::Readings, visited.len() as u64, max_configurations)?;
                    let missing_bytes = self.min_bytes(configuration, reader)?;
                    if missing_bytes == NEVER {
                        continue;
                    }
                    let missing_bytes = missing_bytes.saturating_mul(MISSING_BYTE_WEIGHT);
                    let rank = Reverse(missing_bytes.saturating_add(read + 1));
                    queue.push((rank, read + 1, visited.len() - 1));
                }
            }
        }
        for (configuration, _) in visited {
            self.record(configuration, false, &reader.sublanguages);
        }
        Ok(false)
    }

    /// Marks the configurations on the path to the last visited one as viable.
    fn mark_viable(&mut self, visited: &[(Configuration, usize)], sublanguages: &Sublanguages) {
        let mut at = visited.len() - 1;
        loop {
            self.record(visited[at].0, true, sublanguages);
            if at == 0 {
                return;
            }
            at = visited[at].1;
        }
    }

    /// Returns the completion bound of a configuration at the current precision.
    fn completion(
        &mut self,
        configuration: Configuration,
        reader: &mut ConfigurationReader,
    ) -> Result<CompletionLength, Error> {
        let Some(closely) = self.precision else { return Ok(CompletionLength::Unknown) };
        let precision =
            if reader.parser.indentation.is_some() { Precision::Coarse } else { Precision::Fine };
        if closely == Precision::Finest {
            match self.bound_with_precision(configuration, Precision::Finest, reader)? {
                // The closest bound may exceed its limit.
                CompletionLength::Unknown => {}
                bound => return Ok(bound),
            }
        }
        self.bound_with_precision(configuration, precision, reader)
    }

    fn bound_with_precision(
        &mut self,
        configuration: Configuration,
        precision: Precision,
        reader: &mut ConfigurationReader,
    ) -> Result<CompletionLength, Error> {
        let bounds = &mut self.bounds[precision as usize];
        if bounds.is_none() {
            *bounds = CompletionBounds::new(None, precision, &self.limits, reader).map(Box::new);
        }
        match bounds {
            Some(bounds) => bounds.completion(configuration, None, reader),
            None => Ok(CompletionLength::Unknown),
        }
    }

    /// Returns the minimum bytes that complete a configuration, [`NEVER`] if nothing does. The
    /// result is exact with [`crate::Lexing::Any`].
    pub(crate) fn min_bytes(
        &mut self,
        configuration: Configuration,
        reader: &mut ConfigurationReader,
    ) -> Result<u32, Error> {
        match self.completion(configuration, reader)? {
            CompletionLength::Never => return Ok(NEVER),
            // The whitespace of required lines is counted below.
            CompletionLength::AtLeast(_) if reader.parser.indentation.is_some() => {}
            CompletionLength::AtLeast(bytes) | CompletionLength::Exactly(bytes) => {
                return Ok(bytes as u32);
            }
            CompletionLength::Unknown => {}
        }
        reader.min_bytes(configuration)
    }

    /// Returns a lower bound on the bytes that complete one of some configurations.
    pub(crate) fn min_bytes_of_any(
        &mut self,
        configurations: &[Configuration],
        reader: &mut ConfigurationReader,
    ) -> Result<u32, Error> {
        let mut min_bytes = u32::MAX;
        for &configuration in configurations {
            min_bytes = min_bytes.min(self.min_bytes(configuration, reader)?);
        }
        Ok(min_bytes)
    }

    /// Drops the configurations that have no completion.
    pub(crate) fn retain_viable(
        &mut self,
        configurations: &mut Vec<Configuration>,
        reader: &mut ConfigurationReader,
    ) -> Result<(), Error> {
        let mut kept = 0;
        for at in 0..configurations.len() {
            if self.is_viable(configurations[at], reader)? {
                configurations[kept] = configurations[at];
                kept += 1;
            }
        }
        configurations.truncate(kept);
        Ok(())
    }

    /// Caches the verdict of a viability search.
    fn record(&mut self, configuration: Configuration, viable: bool, sublanguages: &Sublanguages) {
        if self.log.is_none() && sublanguages.is_scratch_position(configuration) {
            return;
        }
        self.viable.insert(configuration, viable);
        if let Some(log) = &mut self.log {
            log.push(configuration);
        }
    }

    /// Starts to log new entries, so that [`CompletionSearch::rollback`] can drop them.
    pub(crate) fn checkpoint(&mut self) {
        self.log = Some(Vec::new());
        self.completable.checkpoint();
    }

    /// Keeps what was found since [`CompletionSearch::checkpoint`], except about positions in
    /// sublanguages that end with the lookahead.
    pub(crate) fn commit(&mut self, sublanguages: &Sublanguages) {
        for configuration in self.log.take().into_iter().flatten() {
            if sublanguages.is_scratch_position(configuration) {
                self.viable.remove(&configuration);
            }
        }
        self.completable.commit();
    }

    /// Drops what was found since [`CompletionSearch::checkpoint`].
    pub(crate) fn rollback(&mut self) {
        for configuration in self.log.take().into_iter().flatten() {
            self.viable.remove(&configuration);
        }
        self.completable.rollback();
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let bounds = self.bounds.iter().flatten();
        self.viable.len() * 20
            + self.completable.memory_bytes()
            + bounds.map(|bounds| bounds.memory_bytes()).sum::<usize>()
    }
}
