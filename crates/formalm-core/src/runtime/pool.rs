//! The thread pool of the process, rebuilt after a fork.
//!
//! Rayon's global pool lives in the process that created it. A child of a fork has the pool without
//! its threads, and waits for them forever. Here each process has its own pool, created on first
//! use. No other file calls rayon, so that nothing ends up in the global pool (`clippy.toml`
//! refuses its functions everywhere else).

#![expect(clippy::disallowed_methods, reason = "called within our own pool only")]

use rayon::prelude::*;

use crate::process_fork::PerProcess;

/// Maximum number of threads unless the environment sets it. More threads gain nothing measurable
/// for a batch of masks, and a server needs its cores for other work.
const MAX_DEFAULT_THREADS: usize = 8;

/// Environment variables that set the number of threads, in order of precedence.
pub const THREAD_VARIABLES: [&str; 2] = ["FORMALM_THREADS", "RAYON_NUM_THREADS"];

/// Returns the pool of this process, or `None` where one thread does all the work, or no threads
/// can be created.
fn pool() -> Option<&'static rayon::ThreadPool> {
    static POOL: PerProcess<Option<rayon::ThreadPool>> = PerProcess::new();
    let make = || {
        let threads = thread_count();
        let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let builder = builder.thread_name(|at| format!("formalm-{at}"));
        // A system that is out of threads is no reason to fail: the caller's own thread does the
        // work.
        (threads > 1).then(|| builder.build().ok()).flatten()
    };
    POOL.get_or_init(make).as_ref()
}

/// Returns the number of threads: that of the environment, or the number of cores.
pub fn thread_count() -> usize {
    let asked =
        THREAD_VARIABLES.iter().find_map(|name| parse_thread_count(&std::env::var(name).ok()?));
    asked.unwrap_or_else(|| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        cores.min(MAX_DEFAULT_THREADS)
    })
}

/// Parses the number of threads of a variable; `None` unless it is a number from 1 to 1,024.
pub fn parse_thread_count(value: &str) -> Option<usize> {
    value.trim().parse().ok().filter(|count| (1..=1024).contains(count))
}

/// Calls both functions, in parallel if there are threads.
pub fn join<A: Send, B: Send>(
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> (A, B) {
    match pool() {
        Some(pool) => pool.install(|| rayon::join(first, second)),
        None => (first(), second()),
    }
}

/// Calls `work` with each item and its index, and returns the results in the order of the items.
///
/// `make` creates scratch space that a run of calls shares. Fewer than `worthwhile` items are
/// processed in the caller's thread.
pub fn map<T: Sync, S, R: Send>(
    items: &[T],
    worthwhile: usize,
    make: impl Fn() -> S + Send + Sync,
    work: impl Fn(&mut S, usize, &T) -> R + Send + Sync,
) -> Vec<R> {
    let pool = if items.len() < worthwhile { None } else { pool() };
    let Some(pool) = pool else {
        let mut own = make();
        return items.iter().enumerate().map(|(at, item)| work(&mut own, at, item)).collect();
    };
    pool.install(|| {
        let items = items.par_iter().enumerate();
        items.map_init(make, |own, (at, item)| work(own, at, item)).collect()
    })
}

/// Calls `work` with each item until one fails.
///
/// # Errors
///
/// One of the errors that `work` returned.
pub fn try_for_each<T: Send, E: Send>(
    items: &mut [T],
    work: impl Fn(&mut T) -> Result<(), E> + Send + Sync,
) -> Result<(), E> {
    let pool = if items.len() < 2 { None } else { pool() };
    match pool {
        Some(pool) => pool.install(|| items.par_iter_mut().try_for_each(work)),
        None => items.iter_mut().try_for_each(work),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_returns_results_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..10_000).collect();
        for worthwhile in [0, 100_000] {
            let found = map(&items, worthwhile, || 1, |one, at, &item| (at, item + *one));
            let expected: Vec<(usize, usize)> = (0..10_000).map(|at| (at, at + 1)).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn join_calls_both_functions() {
        assert_eq!(join(|| 1, || "two"), (1, "two"));
    }

    #[test]
    fn try_for_each_returns_an_error_of_its_function() {
        let work = |one: &mut i32| if *one == 7 { Err("seven") } else { Ok(()) };
        assert_eq!(try_for_each(&mut [1, 2, 7, 8], work), Err("seven"));
        assert_eq!(try_for_each(&mut [7], work), Err("seven"));
        assert_eq!(try_for_each(&mut [1, 2], work), Ok(()));
    }

    #[test]
    fn thread_counts_must_be_between_1_and_1024() {
        let asked = ["1", " 4 ", "1024", "0", "-1", "many", "", "1025"].map(parse_thread_count);
        assert_eq!(asked, [Some(1), Some(4), Some(1024), None, None, None, None, None]);
    }
}
