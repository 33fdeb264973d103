//! Islands, populations and the algorithms that evolve them, as pure functions.
