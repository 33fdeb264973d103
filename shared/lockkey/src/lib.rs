//! Lock-and-key levels and their difficulty by path finding.
