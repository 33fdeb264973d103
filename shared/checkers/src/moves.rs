//! Moves, and which of them are legal.

use crate::position::{Position, Side};
use crate::squares::{Direction, Square, Squares};

/// A move: one step, or a jump over one or more pieces with every square it touches.
///
/// Two jumps that take the same pieces along different ways are two moves.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Move {
    captured: Squares,
    /// The direction of each jump, two bits each, the first lowest.
    way: u32,
    from: Square,
    to: Square,
}

impl Move {
    const fn step(from: Square, to: Square) -> Self {
        Self { captured: Squares::NONE, way: 0, from, to }
    }

    /// Where the piece starts.
    #[inline]
    pub const fn from(&self) -> Square {
        self.from
    }

    /// Where it comes to rest.
    #[inline]
    pub const fn to(&self) -> Square {
        self.to
    }

    /// The squares of the pieces it takes.
    #[inline]
    pub const fn captured(&self) -> Squares {
        self.captured
    }

    /// True if it takes anything.
    #[inline]
    pub const fn is_capture(&self) -> bool {
        !self.captured.is_empty()
    }

    /// Every square it touches, from the first to the last.
    pub fn squares(&self) -> impl Iterator<Item = Square> + use<> {
        let Self { captured, way, from, to } = *self;
        let jumps = captured.count();
        let landings = (0..jumps).scan(Squares::from(from), move |at, jump| {
            let direction = Direction::ALL[(way >> (2 * jump) & 3) as usize];
            *at = at.step(direction).step(direction);
            Some(at.first())
        });
        std::iter::once(from).chain(landings).chain((jumps == 0).then_some(to))
    }
}

/// A jump that may still continue.
#[derive(Clone, Copy)]
struct Jump {
    origin: Squares,
    at: Squares,
    captured: Squares,
    way: u32,
}

impl Jump {
    fn from(origin: Squares) -> Self {
        Self { origin, at: origin, captured: Squares::NONE, way: 0 }
    }

    #[inline]
    fn over(self, victim: Squares, landing: Squares, direction: Direction) -> Self {
        let way = self.way | (direction as u32) << (2 * self.captured.count());
        Self { at: landing, captured: self.captured | victim, way, ..self }
    }

    fn finished(self) -> Move {
        Move { captured: self.captured, way: self.way, from: self.origin.first(), to: self.at.first() }
    }
}

impl Side {
    /// The two directions in which this side's men go.
    #[inline]
    const fn forward(self) -> [Direction; 2] {
        match self {
            Self::Black => [Direction::DownLeft, Direction::DownRight],
            Self::White => [Direction::UpLeft, Direction::UpRight],
        }
    }
}

impl Position {
    /// All legal moves, in an order that depends on the position alone. None: the side to move has lost.
    pub fn legal_moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        self.for_each_move(|mv| moves.push(mv));
        moves
    }

    /// Calls `visit` with each legal move, in the order of [`Position::legal_moves`]: all captures, or if there
    /// are none all steps.
    #[inline]
    pub fn for_each_move(&self, mut visit: impl FnMut(Move)) {
        let jumpers = self.jumpers();
        if jumpers.is_empty() {
            self.for_each_step(visit);
        } else {
            self.for_each_jump(jumpers, &mut visit);
        }
    }

    /// How many legal moves there are.
    #[inline]
    pub fn count_moves(&self) -> u64 {
        let jumpers = self.jumpers();
        if jumpers.is_empty() {
            return u64::from(Direction::ALL.map(|d| self.step_targets(d).count()).iter().sum::<u32>());
        }
        let mut count = 0;
        self.for_each_jump(jumpers, &mut |_| count += 1);
        count
    }

    /// True if the side to move can capture, and so must.
    #[inline]
    pub fn must_capture(&self) -> bool {
        !self.jumpers().is_empty()
    }

    /// True if the side to move has no legal move and has lost.
    pub fn is_lost(&self) -> bool {
        !self.must_capture() && !self.can_step()
    }

    /// True if some piece of the side to move has an empty square to step to.
    #[inline]
    pub(crate) fn can_step(&self) -> bool {
        Direction::ALL.iter().any(|&direction| !self.step_targets(direction).is_empty())
    }

    /// The pieces of the side to move that may go in `direction`.
    #[inline]
    fn movers(&self, direction: Direction) -> Squares {
        let own = self.pieces(self.side);
        if self.side.forward().contains(&direction) { own } else { own & self.kings }
    }

    /// The empty squares that are one step in `direction` from a piece that may go there.
    #[inline]
    fn step_targets(&self, direction: Direction) -> Squares {
        self.movers(direction).step(direction) & self.empty()
    }

    /// The pieces of the side to move that can capture something.
    #[inline]
    fn jumpers(&self) -> Squares {
        let (other, empty) = (self.pieces(!self.side), self.empty());
        Direction::ALL.iter().fold(Squares::NONE, |jumpers, &direction| {
            let back = direction.opposite();
            jumpers | ((empty.step(back) & other).step(back) & self.movers(direction))
        })
    }

    #[inline]
    fn for_each_step(&self, mut visit: impl FnMut(Move)) {
        for direction in Direction::ALL {
            for to in self.step_targets(direction) {
                visit(Move::step(Squares::from(to).step(direction.opposite()).first(), to));
            }
        }
    }

    fn for_each_jump(&self, jumpers: Squares, visit: &mut impl FnMut(Move)) {
        for jumper in jumpers {
            let origin = Squares::from(jumper);
            let directions: &[Direction] =
                if self.kings.meets(origin) { &Direction::ALL } else { &self.side.forward() };
            self.extend_jump(Jump::from(origin), directions, visit);
        }
    }

    /// Continues a jump in every possible way, and visits it where it ends.
    fn extend_jump(&self, jump: Jump, directions: &[Direction], visit: &mut impl FnMut(Move)) {
        let victims = self.pieces(!self.side) & !jump.captured;
        let empty = self.empty() | jump.origin;
        let mut finished = true;
        for &direction in directions {
            let victim = jump.at.step(direction) & victims;
            let landing = victim.step(direction) & empty;
            if !landing.is_empty() {
                finished = false;
                self.extend_jump(jump.over(victim, landing, direction), directions, visit);
            }
        }
        if finished {
            visit(jump.finished());
        }
    }
}
