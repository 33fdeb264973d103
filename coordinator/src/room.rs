//! How much a message may still take.

/// The most that one body may take within a message.
const LARGEST: usize = 256 << 10;
/// The most that all bodies of a message may take.
const ALL: usize = 1 << 20;

/// The room that is left in one message.
#[derive(Debug)]
pub(crate) struct Room(usize);

impl Room {
    pub(crate) fn new() -> Self {
        Self(ALL)
    }

    /// Takes so much room, if it is there.
    pub(crate) fn takes(&mut self, bytes: usize) -> bool {
        let fits = bytes <= LARGEST && bytes <= self.0;
        if fits {
            self.0 -= bytes;
        }
        fits
    }

    /// Whether there is room for more than a few words.
    pub(crate) fn is_left(&self) -> bool {
        self.0 >= LARGEST
    }
}
