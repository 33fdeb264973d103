//! A slow and obvious simulator on a plain grid of bytes, and the fast one against it, move by move.

// Whatever goes wrong beside the assertions should fail a test as well.

use match3::{
    Board, Direction, Game, InitialMatches, Level, Move, Outcome, Play, Player, Rules, Score, Stream,
};
use proptest::prelude::*;

type Grid = Vec<Vec<u8>>;

const DIRECTIONS: [Direction; 4] = [Direction::Up, Direction::Right, Direction::Down, Direction::Left];

fn grid(board: &Board) -> Grid {
    board.rows().map(<[u8]>::to_vec).collect()
}

fn text(grid: &Grid) -> String {
    let character = |&colour: &u8| if colour == 0 { '.' } else { char::from(b'0' + colour) };
    grid.iter().map(|row| row.iter().map(character).collect::<String>() + "\n").collect()
}

fn in_lines(grid: &Grid) -> Vec<(usize, usize)> {
    let (height, width) = (grid.len(), grid[0].len());
    let mut found = vec![];
    for y in 0..height {
        for x in 0..width {
            let colour = grid[y][x];
            let same = |dx: isize, dy: isize| {
                let (x, y) = (x as isize + dx, y as isize + dy);
                let inside = x >= 0 && y >= 0 && x < width as isize && y < height as isize;
                inside && grid[y as usize][x as usize] == colour
            };
            let in_a_row = |dx: isize, dy: isize| {
                let count =
                    |sign: isize| (1..128).take_while(|&n| same(sign * n * dx, sign * n * dy)).count();
                1 + count(1) + count(-1) >= 3
            };
            if colour != 0 && (in_a_row(1, 0) || in_a_row(0, 1)) {
                found.push((x, y));
            }
        }
    }
    found
}

fn fall(grid: &mut Grid) {
    let (height, width) = (grid.len(), grid[0].len());
    for x in 0..width {
        let blocks: Vec<u8> = grid.iter().map(|row| row[x]).filter(|&colour| colour != 0).collect();
        let above = height - blocks.len();
        for (y, row) in grid.iter_mut().enumerate() {
            row[x] = if y < above { 0 } else { blocks[y - above] };
        }
    }
}

/// From the floor up, column by column.
fn refill(grid: &mut Grid, colours: u8, supply: &mut Stream) {
    for x in 0..grid[0].len() {
        for y in (0..grid.len()).rev() {
            if grid[y][x] == 0 {
                grid[y][x] = 1 + supply.below(colours.into()) as u8;
            }
        }
    }
}

fn come_down(grid: &mut Grid, rules: &Rules, supply: &mut Stream) {
    fall(grid);
    if rules.refill {
        refill(grid, rules.colours, supply);
    }
}

fn settle(grid: &mut Grid, rules: &Rules, supply: &mut Stream) -> (u32, u16) {
    let (mut removed, mut waves) = (0, 0);
    loop {
        come_down(grid, rules, supply);
        let cells = in_lines(grid);
        if cells.is_empty() || waves == 100 {
            return (removed, waves);
        }
        for &(x, y) in &cells {
            grid[y][x] = 0;
        }
        removed += cells.len() as u32;
        waves += 1;
    }
}

fn score(rules: &Rules, removed: u32) -> f64 {
    let exponent = f64::from(removed.min(127)) / f64::from(rules.score.blocks);
    if removed == 0 { 0.0 } else { rules.score.base.powf(exponent) }
}

fn play(grid: &mut Grid, block: Move, rules: &Rules, supply: &mut Stream) -> Outcome {
    let (x, y) = (usize::from(block.x), usize::from(block.y));
    let (to_x, to_y) = match block.direction {
        Direction::Up => (x, y.wrapping_sub(1)),
        Direction::Right => (x + 1, y),
        Direction::Down => (x, y + 1),
        Direction::Left => (x.wrapping_sub(1), y),
    };
    let inside = to_x < grid[0].len() && to_y < grid.len();
    if !inside || grid[y][x] == 0 || (grid[to_y][to_x] == 0 && !rules.into_empty) {
        return Outcome::default();
    }
    let before = grid.clone();
    (grid[y][x], grid[to_y][to_x]) = (grid[to_y][to_x], grid[y][x]);
    let (removed, waves) = settle(grid, rules, supply);
    if removed == 0 && rules.swap_back {
        *grid = before;
    }
    Outcome { removed, waves, score: score(rules, removed) }
}

fn start(grid: &mut Grid, rules: &Rules, supply: &mut Stream) -> f64 {
    if rules.initial_matches == InitialMatches::Keep {
        come_down(grid, rules, supply);
        return 0.0;
    }
    let (removed, _) = settle(grid, rules, supply);
    if rules.initial_matches == InitialMatches::Score { score(rules, removed) } else { 0.0 }
}

/// The block and direction that 64 random bits stand for.
fn random_move(grid: &Grid, bits: u64) -> Option<Move> {
    let mut blocks = vec![];
    for x in 0..grid[0].len() {
        blocks.extend((0..grid.len()).rev().filter(|&y| grid[y][x] != 0).map(|y| (x, y)));
    }
    let &(x, y) = blocks.get((((bits >> 32) * blocks.len() as u64) >> 32) as usize)?;
    Some(Move { x: x as u8, y: y as u8, direction: DIRECTIONS[(bits & 3) as usize] })
}

fn random_play(board: &Board, rules: &Rules, seed: u64, index: u64) -> Play {
    let (mut stream, mut supply) = (Stream::nth(seed, index), Stream::nth(!seed, index));
    let mut grid = grid(board);
    let initial = start(&mut grid, rules, &mut supply);
    let mut sum = Play::default();
    for _ in 0..rules.moves {
        let Some(block) = random_move(&grid, stream.next_u64()) else { break };
        let outcome = play(&mut grid, block, rules, &mut supply);
        sum.score += outcome.score;
        sum.scoring_moves += u32::from(outcome.removed > 0);
        sum.waves += u32::from(outcome.waves);
    }
    sum.score += initial;
    sum
}

fn any_rules() -> impl Strategy<Value = Rules> {
    let size = prop_oneof![
        Just((5, 10)),
        Just((8, 8)),
        Just((10, 10)),
        Just((2, 2)),
        Just((1, 30)),
        Just((32, 1)),
        Just((11, 10)),
        Just((1, 63)),
        Just((7, 8)),
        (1_u8..8, 1_u8..8)
    ];
    let initial =
        prop_oneof![Just(InitialMatches::Clear), Just(InitialMatches::Score), Just(InitialMatches::Keep)];
    let score = prop_oneof![Just(Score::default()), Just(Score::STEEP)];
    (size, 1_u8..=7, any::<[bool; 3]>(), initial, score).prop_map(
        |((width, height), colours, [swap_back, into_empty, refill], initial_matches, score)| Rules {
            width,
            height,
            colours,
            moves: 40,
            pass: 15.0,
            swap_back,
            into_empty,
            initial_matches,
            // One or two colours would keep clearing to the limit at every move: true, but slow to check.
            refill: refill && colours > 2,
            score,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_move_does_what_it_does_on_a_plain_grid(rules in any_rules(), seed: u32) {
        let game = Game::new(&rules).unwrap();
        let original = Board::from_seed(&rules, seed);
        let (mut fast_supply, mut slow_supply) = (Stream::new(9), Stream::new(9));
        let (mut board, initial) = game.start(&original, &mut fast_supply).unwrap();
        let mut slow = grid(&original);
        prop_assert!((start(&mut slow, &rules, &mut slow_supply) - initial).abs() <= 1e-9 * initial);
        prop_assert_eq!(board.to_string(), text(&slow));

        let mut stream = Stream::new(seed.into());
        for _ in 0..rules.moves {
            let block = Move {
                x: stream.below(rules.width.into()) as u8,
                y: stream.below(rules.height.into()) as u8,
                direction: DIRECTIONS[stream.below(4) as usize],
            };
            let found = game.play(&mut board, block, &mut fast_supply).unwrap();
            let expected = play(&mut slow, block, &rules, &mut slow_supply);
            prop_assert_eq!((found.removed, found.waves), (expected.removed, expected.waves));
            prop_assert!((found.score - expected.score).abs() <= 1e-9 * expected.score);
            prop_assert_eq!(board.to_string(), text(&slow));
        }
    }

    #[test]
    fn whole_random_plays_are_those_of_the_plain_grid(rules in any_rules(), seed: u32, first in 0_u64..1000) {
        let game = Game::new(&rules).unwrap();
        let board = Board::from_seed(&rules, seed);
        let mut found = [Play::default(); 11];
        game.plays(&board, Player::Random, seed.into(), first, &mut found).unwrap();
        for (index, found) in (first..).zip(found) {
            let expected = random_play(&board, &rules, seed.into(), index);
            prop_assert_eq!((found.scoring_moves, found.waves), (expected.scoring_moves, expected.waves));
            prop_assert!((found.score - expected.score).abs() <= 1e-9 * expected.score, "{:?}", rules);
        }
    }

    #[test]
    fn text_of_any_kind_is_read_or_refused(text in "[.1-9 x\n]{0,60}|\\PC{0,40}", rules in any::<[u8; 3]>()) {
        if let Ok(board) = text.parse::<Board>() {
            prop_assert_eq!(board.to_string().parse::<Board>(), Ok(board.clone()));
            // Whatever can be read is rated or refused.
            if let Ok(level) = Level::of_board(board) {
                let json = level.to_json(None, None).to_string();
                prop_assert_eq!(Level::from_json(&json).unwrap(), level);
                prop_assert!(Level::from_json(&json[..json.len() - 1 - usize::from(rules[0]) % 20]).is_err());
            }
        }
        let [width, height, colours] = rules;
        let rules = Rules { width, height, colours, moves: 5, ..Rules::default() };
        if let Ok(game) = Game::new(&rules) {
            let rating = game.rate(&Board::from_seed(&rules, 1), Player::Random, 1, 9).unwrap();
            prop_assert!(rating.mean >= 0.0 && rating.error.is_finite());
        }
    }

    #[test]
    fn boards_with_gaps_fall_before_they_are_played(rules in any_rules(), cells in prop::collection::vec(0_u8..=3, 128)) {
        let rules = Rules { colours: 3, refill: false, ..rules };
        let width = usize::from(rules.width);
        let rows: Grid = cells[..rules.cells()].chunks(width).map(<[u8]>::to_vec).collect();
        let game = Game::new(&rules).unwrap();
        let board: Board = text(&rows).parse().unwrap();
        let mut slow = rows;
        let mut supply = Stream::new(0);
        start(&mut slow, &rules, &mut supply);
        prop_assert_eq!(game.start(&board, &mut supply).unwrap().0.to_string(), text(&slow));
    }
}
