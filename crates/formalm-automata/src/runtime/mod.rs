//! Process-level support: forks, locks, lock-free tables, deadlines, interrupts and threads.
//!
//! ```text
//!  may end work      deadline (time), interrupt (the owner says so), step_budget (steps)
//!  survives a fork   fork_safe_mutex, set_once, pool
//!  keeps values      append_vec (lock-free), lru_cache
//! ```

mod append_vec;
pub mod deadline;
pub mod fork;
mod fork_safe_mutex;
pub mod interrupt;
mod lru_cache;
pub mod pool;
mod set_once;
mod step_budget;

pub use append_vec::Chunks;
pub use fork_safe_mutex::{Lock, Survey};
pub use lru_cache::Recent;
pub use set_once::{Segment, SetOnce};
pub use step_budget::{Patience, note_steps, steps_taken};
