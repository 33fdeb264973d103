//! Every problem that can be evolved, and the only list of them.

mod onemax;
mod rastrigin;

pub use onemax::OneMax;
pub use rastrigin::Rastrigin;
