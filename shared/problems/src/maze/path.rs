//! Children that are paths: crossed where their parents meet, planned again from some turn on, re-routed in places.

use evolution::population::Cost;
use evolution::problem::Breeder;
use evolution::random::{Chance, Stream};
use maze::{Board, BoundError, Guide, Planning, Router, Turns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// How much each operator is used; at 0 it is switched off.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PathOperators {
    /// The share of children that follow their second parent from a cell that both parents visit.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub cross: f64,
    /// The share of children whose moves from a random turn on are planned again, by a narrow beam search.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub replan: f64,
    /// The share of those plans that look at what the rest of the board may still give, rather than at points alone.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub guided: f64,
    /// Short stretches of each child that are led another way.
    #[schemars(range(min = 0, max = 100))]
    pub reroutes: u32,
    /// States that plans keep for each turn; detours keep twice as many.
    #[schemars(range(min = 1, max = 512))]
    pub width: u32,
}

impl Default for PathOperators {
    fn default() -> Self {
        Self { cross: 0.4, replan: 0.5, guided: 0.5, reroutes: 2, width: 8 }
    }
}

/// Plans are blurred by a random part of at most this number of points: without, equal parents would have equal children.
const MOST_NOISE: usize = 7;
/// How many moves a detour takes.
const DETOUR: RangeInclusive<usize> = 2..=13;

/// Makes the paths of one game.
pub(crate) struct PathBreeder {
    operators: PathOperators,
    board: Board,
    turns: Turns,
    /// Made with the first child: it takes a tenth of a second, which a check of an experiment should not wait for.
    guide: OnceLock<Option<Arc<Guide>>>,
    /// A router keeps its working space, so each thread needs one of its own; they are used again.
    spare: Mutex<Vec<Router>>,
}

impl PathBreeder {
    pub(crate) fn new(operators: PathOperators, board: &Board, turns: Turns) -> Result<Self, BoundError> {
        if operators.replan > 0.0 && operators.guided > 0.0 {
            Guide::check(board, turns)?;
        }
        let board = board.clone();
        Ok(Self { operators, board, turns, guide: OnceLock::new(), spare: Mutex::default() })
    }

    fn router(&self) -> Router {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.unwrap_or_else(|| Router::new(&self.board, self.guide()))
    }

    fn guide(&self) -> Option<Arc<Guide>> {
        let is_asked = self.operators.replan > 0.0 && self.operators.guided > 0.0;
        let make =
            || is_asked.then(|| Guide::new(&self.board, self.turns).expect("this was checked")).map(Arc::new);
        self.guide.get_or_init(make).clone()
    }

    fn planning(&self) -> Planning {
        Planning { width: self.operators.width as usize, noise: 1 }
    }

    fn cross(&self, router: &mut Router, parents: [&[u8]; 2], child: &mut [u8], stream: &mut Stream) {
        let [mother, father] = parents;
        let crossed = stream.chance(Chance::new(self.operators.cross))
            && router.cross(mother, father, child, self.planning(), || stream.bits()).is_some();
        if !crossed {
            child.copy_from_slice(mother);
        }
    }

    fn replan(&self, router: &mut Router, child: &mut [u8], stream: &mut Stream) {
        if stream.chance(Chance::new(self.operators.replan)) {
            let from = stream.below(child.len());
            let planning = Planning { noise: stream.below(MOST_NOISE + 1) as u32, ..self.planning() };
            let guided = stream.chance(Chance::new(self.operators.guided));
            router.replan_tail(child, from, planning, guided, || stream.bits());
        }
    }

    fn reroute(&self, router: &mut Router, child: &mut [u8], stream: &mut Stream) {
        let moves = (DETOUR.start() + stream.below(DETOUR.count())).min(child.len());
        let from = stream.below(child.len() - moves + 1);
        let planning = Planning { width: 2 * self.operators.width as usize, noise: 1 };
        if from + moves == child.len() {
            // Behind the last move there is nothing to come back to.
            router.replan_tail(child, from, planning, false, || stream.bits());
        } else {
            router.reroute(child, from, from + moves, planning, || stream.bits());
        }
    }
}

impl Breeder<u8> for PathBreeder {
    fn breed(&self, mother: &[u8], father: &[u8], child: &mut [u8], stream: &mut Stream) {
        let mut router = self.router();
        self.cross(&mut router, [mother, father], child, stream);
        self.replan(&mut router, child, stream);
        for _ in 0..self.operators.reroutes {
            self.reroute(&mut router, child, stream);
        }
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(router);
    }

    fn cost(&self) -> Cost {
        Cost { nanoseconds: 1000 * self.turns.count() as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evolution::random::{Key, Purpose};
    use maze::{Evaluator, random};

    const OFF: PathOperators = PathOperators { cross: 0.0, replan: 0.0, guided: 0.0, reroutes: 0, width: 8 };

    /// Two random parents and the child that these operators make of them.
    fn family(operators: PathOperators, seed: u64) -> [Vec<u8>; 3] {
        let board = Board::generate_walled(9, 7, seed as u32, 10).unwrap();
        let turns = Turns::new(30).unwrap();
        let mut stream = Key::new(seed, 0, 0).stream(0, Purpose::Variation);
        let mut parent = || -> Vec<u8> {
            random(&board, turns, || stream.bits()).path.iter().map(|way| way.gene()).collect()
        };
        let (mother, father) = (parent(), parent());
        let mut child = vec![0; 30];
        let breeder = PathBreeder::new(operators, &board, turns).unwrap();
        breeder.breed(&mother, &father, &mut child, &mut stream);
        assert!(Evaluator::new(&board).score_strictly(&child).is_some(), "every move is possible");
        [mother, father, child]
    }

    fn changed(operators: PathOperators) -> usize {
        (0..20).map(|seed| family(operators, seed)).filter(|[mother, _, child]| mother != child).count()
    }

    #[test]
    fn each_operator_works_alone() {
        assert_eq!(changed(OFF), 0);
        assert!(changed(PathOperators { cross: 1.0, ..OFF }) > 10);
        assert!(changed(PathOperators { replan: 1.0, ..OFF }) > 15);
        assert!(changed(PathOperators { replan: 1.0, guided: 1.0, ..OFF }) > 15);
        assert!(changed(PathOperators { reroutes: 1, ..OFF }) > 15);
    }

    #[test]
    fn children_follow_from_their_stream() {
        assert_eq!(family(PathOperators::default(), 3), family(PathOperators::default(), 3));
    }

    #[test]
    fn games_too_long_for_a_guide_are_refused_unless_nobody_asks_for_it() {
        let board = Board::generate(5, 5, 0).unwrap();
        let refused = |operators| PathBreeder::new(operators, &board, Turns::new(1001).unwrap()).is_err();
        assert!(refused(PathOperators::default()));
        assert!(!refused(PathOperators { guided: 0.0, ..PathOperators::default() }));
        assert!(!refused(PathOperators { replan: 0.0, ..PathOperators::default() }));
    }
}
