//! Process-level support: forks, locks, lock-free tables, deadlines, interrupts and threads.

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
