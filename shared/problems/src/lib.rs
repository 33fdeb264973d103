//! Every problem that can be evolved, and the only list of them.
