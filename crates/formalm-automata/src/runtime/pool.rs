//! Work on several cores, in threads of our own.
//!
//! The global pool of rayon lives in the process that made it: a child of a fork has the pool without
//! its threads, and waits for them for ever. Each process has its own pool here, made when it is
//! first needed. No other file calls rayon, so that nothing ends up in the global one (`clippy.toml`
//! refuses its functions everywhere else).

#![expect(clippy::disallowed_methods, reason = "called within our own pool only")]

use rayon::prelude::*;

use crate::runtime::fork::PerProcess;

/// Most threads of a pool, unless the environment says otherwise. Beyond these a batch of masks gains
/// nothing that can be measured, and a server has other work for its cores.
const MAX_DEFAULT_THREADS: usize = 8;

/// Variables of the environment that tell the number of threads, in the order in which they count.
pub const VARIABLES: [&str; 2] = ["FORMALM_THREADS", "RAYON_NUM_THREADS"];

/// The pool of this process; none where one thread does all, or no threads can be made.
fn pool() -> Option<&'static rayon::ThreadPool> {
    static POOL: PerProcess<Option<rayon::ThreadPool>> = PerProcess::new();
    let make = || {
        let threads = thread_count();
        let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let builder = builder.thread_name(|at| format!("formalm-{at}"));
        // A system that is out of threads is no reason to fail: the caller's own does the work.
        (threads > 1).then(|| builder.build().ok()).flatten()
    };
    POOL.get_or_init(make).as_ref()
}

/// Number of threads that work is spread over, the environment's or that of the cores.
pub fn thread_count() -> usize {
    let asked = VARIABLES.iter().find_map(|name| threads_of(&std::env::var(name).ok()?));
    asked.unwrap_or_else(|| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        cores.min(MAX_DEFAULT_THREADS)
    })
}

/// Number of threads that a variable asks for; none if it is no number from 1 to 1,024.
pub fn threads_of(value: &str) -> Option<usize> {
    value.trim().parse().ok().filter(|count| (1..=1024).contains(count))
}

/// Calls both functions, at once if there are threads for it.
pub fn join<A: Send, B: Send>(
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> (A, B) {
    match pool() {
        Some(pool) => pool.install(|| rayon::join(first, second)),
        None => (first(), second()),
    }
}

/// Calls `work` with each item and its place, and lists what it returns in the order of the items.
///
/// `make` returns what a run of calls can use again. Fewer than `worthwhile` items are worked on in
/// the caller's thread.
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

/// Calls `work` with each item until it fails.
///
/// # Errors
///
/// One of those that `work` returned.
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
    fn items_keep_their_order() {
        let items: Vec<usize> = (0..10_000).collect();
        for worthwhile in [0, 100_000] {
            let found = map(&items, worthwhile, || 1, |one, at, &item| (at, item + *one));
            let expected: Vec<(usize, usize)> = (0..10_000).map(|at| (at, at + 1)).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn both_functions_are_called() {
        assert_eq!(join(|| 1, || "two"), (1, "two"));
    }

    #[test]
    fn an_error_is_returned() {
        let work = |one: &mut i32| if *one == 7 { Err("seven") } else { Ok(()) };
        assert_eq!(try_for_each(&mut [1, 2, 7, 8], work), Err("seven"));
        assert_eq!(try_for_each(&mut [7], work), Err("seven"));
        assert_eq!(try_for_each(&mut [1, 2], work), Ok(()));
    }

    #[test]
    fn numbers_of_threads_are_positive_and_not_absurd() {
        let asked = ["1", " 4 ", "1024", "0", "-1", "many", "", "1025"].map(threads_of);
        assert_eq!(asked, [Some(1), Some(4), Some(1024), None, None, None, None, None]);
    }
}
