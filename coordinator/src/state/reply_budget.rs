//! How much a message may still take.

/// The most that one body may take within a message.
const LARGEST: usize = 256 << 10;
/// The most that all bodies of a message may take.
const ALL: usize = 1 << 20;

/// What is left of one message.
#[derive(Debug)]
pub(crate) struct ReplyBudget {
    left: usize,
    largest: usize,
}

impl ReplyBudget {
    /// A message over a network.
    pub(crate) fn new() -> Self {
        Self { left: ALL, largest: LARGEST }
    }

    /// A message within this process, where nothing is copied.
    pub(crate) fn unlimited() -> Self {
        Self { left: usize::MAX, largest: usize::MAX / 2 }
    }

    /// Takes this number of bytes, if there is room.
    pub(crate) fn takes(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.largest && bytes <= self.left;
        if fits {
            self.left -= bytes;
        }
        fits
    }

    /// Whether there is room for more than a few words.
    pub(crate) fn is_left(&self) -> bool {
        self.left >= self.largest
    }
}
