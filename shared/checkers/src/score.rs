//! What a position is worth to the side to move.

use std::fmt;
use std::ops::Neg;

/// What a position is worth to the side to move: an evaluator's opinion between -1 and 1, or a proved win or
/// loss in a number of plies, which lies outside that range.
///
/// An integer, so that search windows are exact: an opinion is kept in steps of 2^-24.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Score(pub(crate) i32);

impl Score {
    /// Neither side is better.
    pub const EVEN: Self = Self(0);
    /// Better than every score a position can have.
    pub(crate) const INFINITE: Self = Self(i32::MAX);

    /// The opinion 1.
    pub(crate) const ONE: f32 = 16_777_216.0;
    /// A win on the spot; one ply later it is one less.
    const WIN: i32 = 1 << 30;
    /// Scores from here on are proved wins; no game tree is as deep as the difference.
    const PROVED: i32 = Self::WIN - (1 << 16);

    /// An evaluator's opinion, cut to -1 to 1; NaN counts as 0.
    #[inline]
    pub fn from_value(value: f32) -> Self {
        Self((value.clamp(-1.0, 1.0) * Self::ONE) as i32)
    }

    /// The opinion as a number; a proved win is 1, a proved loss -1.
    pub fn value(self) -> f32 {
        (self.0 as f32 / Self::ONE).clamp(-1.0, 1.0)
    }

    /// The side to move has lost, `plies` plies from where scores are counted.
    #[inline]
    pub(crate) const fn loss_in(plies: usize) -> Self {
        Self(plies as i32 - Self::WIN)
    }

    /// Plies until the win that is proved, if one is.
    pub const fn win_in(self) -> Option<u32> {
        if self.0 >= Self::PROVED { Some((Self::WIN - self.0) as u32) } else { None }
    }

    /// Plies until the loss that is proved, if one is.
    pub const fn lost_in(self) -> Option<u32> {
        Self(-self.0).win_in()
    }

    /// The score as seen from `plies` plies further down the tree, where proved ends are that much nearer.
    #[inline]
    pub(crate) const fn nearer(self, plies: usize) -> Self {
        self.shifted(plies as i32)
    }

    /// The inverse of [`Score::nearer`].
    #[inline]
    pub(crate) const fn farther(self, plies: usize) -> Self {
        self.shifted(-(plies as i32))
    }

    #[inline]
    const fn shifted(self, plies: i32) -> Self {
        if self.0 >= Self::PROVED {
            Self(self.0 + plies)
        } else if self.0 <= -Self::PROVED {
            Self(self.0 - plies)
        } else {
            self
        }
    }

    /// The next higher score.
    #[inline]
    pub(crate) const fn above(self) -> Self {
        Self(self.0 + 1)
    }

    /// The next lower score.
    #[inline]
    pub(crate) const fn below(self) -> Self {
        Self(self.0 - 1)
    }
}

impl Neg for Score {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

/// `win in 3 plies`, `loss in 2 plies`, or the opinion as a signed number.
impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.win_in(), self.lost_in()) {
            (Some(1), _) => f.write_str("win in 1 ply"),
            (Some(plies), _) => write!(f, "win in {plies} plies"),
            (_, Some(1)) => f.write_str("loss in 1 ply"),
            (_, Some(plies)) => write!(f, "loss in {plies} plies"),
            _ => write!(f, "{:+.6}", self.value()),
        }
    }
}

impl fmt::Debug for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proved_ends_lie_outside_every_opinion_and_prefer_quick_wins() {
        let quick = -Score::loss_in(3);
        let slow = -Score::loss_in(200);
        assert!(quick > slow && slow > Score::from_value(1.0));
        assert!(-slow < Score::from_value(-1.0));
        assert_eq!(quick.win_in(), Some(3));
        assert_eq!((-quick).lost_in(), Some(3));
        assert_eq!(Score::from_value(1.0).win_in(), None);
    }

    #[test]
    fn proved_ends_are_shown_in_plies() {
        assert_eq!((-Score::loss_in(3)).to_string(), "win in 3 plies");
        assert_eq!((-Score::loss_in(1)).to_string(), "win in 1 ply");
        assert_eq!(Score::loss_in(2).to_string(), "loss in 2 plies");
    }

    #[test]
    fn seen_from_further_down_an_end_is_nearer() {
        let win = -Score::loss_in(7);
        assert_eq!(win.nearer(4).win_in(), Some(3));
        assert_eq!((-win).nearer(4).lost_in(), Some(3));
        assert_eq!(win.nearer(4).farther(4), win);
        assert_eq!(Score::from_value(0.5).nearer(9), Score::from_value(0.5));
    }

    #[test]
    fn nothing_that_is_no_number_gets_through() {
        assert_eq!(Score::from_value(f32::NAN), Score::EVEN);
        assert_eq!(Score::from_value(f32::INFINITY), Score::from_value(1.0));
    }
}
