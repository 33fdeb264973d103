//! The archipelago and its plan as pure state machines, and the run that drives them.
