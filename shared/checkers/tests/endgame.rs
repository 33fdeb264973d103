//! The endgame database: published counts, consistency, deep searches, and files.

use checkers::{
    Counts, Database, EndgameError, EndgameResult, Limits, Move, Position, RandomOpinion, Reuse, Search,
    Side, Square, Squares,
};
use std::path::Path;
use std::sync::LazyLock;

use crate::support::{Random, turned};

/// All positions of up to four pieces.
static FOUR: LazyLock<Database> = LazyLock::new(|| Database::compute(4).unwrap());

fn counts(of: impl Fn(checkers::PieceCounts) -> bool) -> Counts {
    FOUR.slices().filter(|(slice, _)| of(*slice)).fold(Counts::default(), |sum, (_, counts)| sum.plus(counts))
}

#[test]
fn there_are_as_many_wins_losses_and_draws_as_published() {
    for (pieces, wins, losses, draws) in [(2, 716, 402, 2_370), (3, 100_250, 87_305, 8_477)] {
        assert_eq!(counts(|slice| slice.pieces() == pieces), Counts { wins, losses, draws });
    }
    let two_a_side = |slice: checkers::PieceCounts| {
        slice.black_men + slice.black_kings == 2 && slice.white_men + slice.white_kings == 2
    };
    assert_eq!(counts(two_a_side), Counts { wins: 793_856, losses: 174_168, draws: 1_694_908 });
}

/// Every position of some pieces, placed the obvious way.
fn for_each_position(pieces: usize, visit: &mut impl FnMut(&Position)) {
    fn place(board: [Squares; 3], from: u8, left: usize, visit: &mut impl FnMut(&Position)) {
        let [black, white, kings] = board;
        if left == 0 {
            for side in [Side::Black, Side::White] {
                if let Ok(position) = Position::new(black, white, kings, side) {
                    visit(&position);
                }
            }
            return;
        }
        for number in from..=32 {
            let square = Squares::from(Square::new(number).unwrap());
            for (black_too, white_too) in [(square, Squares::NONE), (Squares::NONE, square)] {
                for king in [square, Squares::NONE] {
                    let board = [black | black_too, white | white_too, kings | king];
                    place(board, number + 1, left - 1, visit);
                }
            }
        }
    }
    place([Squares::NONE; 3], 1, pieces, visit);
}

/// What the moves of a position make of it.
fn by_successors(database: &Database, position: &Position) -> EndgameResult {
    let after = |mv: &Move| database.probe(&position.play(mv)).unwrap().turned();
    let verdicts: Vec<EndgameResult> = position.legal_moves().iter().map(after).collect();
    if verdicts.contains(&EndgameResult::Win) {
        EndgameResult::Win
    } else if verdicts.contains(&EndgameResult::Draw) {
        EndgameResult::Draw
    } else {
        EndgameResult::Loss
    }
}

#[test]
fn every_verdict_follows_from_those_of_its_successors() {
    for pieces in 1..=4 {
        let mut count = 0_u64;
        for_each_position(pieces, &mut |position| {
            let known = FOUR.probe(position).unwrap();
            assert_eq!(known, by_successors(&FOUR, position), "{position}");
            count += 1;
        });
        assert_eq!(count, 2 * [120, 6_972, 261_224, 7_092_774][pieces - 1], "both sides to move");
    }
}

/// Consistency alone would allow that two positions prove each other won: every win can be played out.
#[test]
fn every_win_is_won_and_every_loss_lost_by_the_best_moves() {
    let mut random = Random::new(5);
    let mut decided = 0;
    while decided < 400 {
        let mut position = scattered(&mut random, 4);
        let mut verdict = FOUR.probe(&position).unwrap();
        if verdict == EndgameResult::Draw {
            continue;
        }
        decided += 1;
        let mut plies = 0;
        while let Some(mv) = FOUR.best_moves(&position).unwrap().first() {
            position = position.play(mv);
            verdict = verdict.turned();
            assert_eq!(FOUR.probe(&position), Some(verdict));
            plies += 1;
            assert!(plies < 150, "it goes on for ever at {position}");
        }
        assert!(position.is_lost() && verdict == EndgameResult::Loss);
    }
}

/// Some pieces anywhere, at least one a side.
fn scattered(random: &mut Random, pieces: u32) -> Position {
    loop {
        let mut sets = [Squares::NONE; 3];
        while (sets[0] | sets[1]).count() < pieces {
            let square = Squares::from(Square::new(1 + random.below(32) as u8).unwrap());
            if !(sets[0] | sets[1]).meets(square) {
                let side = random.below(2);
                sets[side] |= square;
                if random.below(2) == 0 {
                    sets[2] |= square;
                }
            }
        }
        let side = [Side::Black, Side::White][random.below(2)];
        if let Ok(position) = Position::new(sets[0], sets[1], sets[2], side)
            && !sets[0].is_empty()
            && !sets[1].is_empty()
        {
            return position;
        }
    }
}

#[test]
fn the_database_never_contradicts_a_deep_search() {
    let mut search = Search::new(18, Reuse::EqualDepth);
    let mut random = Random::new(6);
    let mut proved = 0;
    for _ in 0..200 {
        let position = scattered(&mut random, 4);
        search.forget();
        let Some(found) = search.run(&mut RandomOpinion { seed: 1 }, &position, &Limits::depth(11)) else {
            assert_eq!(FOUR.probe(&position), Some(EndgameResult::Loss));
            continue;
        };
        let expected = match (found.score.win_in(), found.score.lost_in()) {
            (Some(_), _) => EndgameResult::Win,
            (_, Some(_)) => EndgameResult::Loss,
            _ => continue,
        };
        proved += 1;
        assert_eq!(FOUR.probe(&position), Some(expected), "{position}");
    }
    assert!(proved > 60, "only {proved} ends in sight");
}

#[test]
fn the_board_may_be_turned() {
    let mut random = Random::new(7);
    for _ in 0..10_000 {
        let position = scattered(&mut random, 4);
        assert_eq!(FOUR.probe(&position), FOUR.probe(&turned(&position)));
    }
}

#[test]
fn more_pieces_than_were_built_are_unknown() {
    assert_eq!(FOUR.probe(&Position::START), None);
    assert_eq!(FOUR.probe(&"B:WK32,K31,K30:BK1,K2".parse().unwrap()), None);
    assert_eq!(FOUR.best_moves(&Position::START), None);
    assert!(matches!(Database::compute(7), Err(EndgameError::Pieces(7))));
}

#[test]
fn the_digest_is_the_same_in_every_release() {
    assert_eq!(FOUR.digest(), "3efdefe4845245fce4c8412a927109b76dad29d370866c0f6d4d2b7f72dd9086");
}

/// A database of three pieces in a folder of its own.
fn three() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    Database::build(folder.path(), 3, |_| true).unwrap().unwrap();
    folder
}

#[test]
fn files_hold_what_was_computed() {
    let folder = three();
    let opened = Database::open(folder.path(), 3).unwrap();
    assert_eq!(opened.digest(), Database::compute(3).unwrap().digest());
    for_each_position(3, &mut |position| assert_eq!(opened.probe(position), FOUR.probe(position)));
    let missing = Database::open(folder.path(), 4).unwrap_err().to_string();
    assert!(missing.contains("atoll endgame build --pieces 4"), "{missing}");
}

#[test]
fn a_build_goes_on_where_it_was_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let mut steps = 0;
    let stopped = Database::build(folder.path(), 3, |step| {
        steps += 1;
        step.done < step.all / 2
    });
    assert!(stopped.unwrap().is_none() && steps > 1);
    let mut last = None;
    let resumed = Database::build(folder.path(), 3, |step| {
        last = Some(*step);
        true
    });
    let last = last.unwrap();
    assert!(last.found >= last.all / 2 && last.found < last.all && last.done == last.all, "{last:?}");
    assert_eq!(resumed.unwrap().unwrap().digest(), Database::compute(3).unwrap().digest());
}

#[test]
fn threads_make_no_difference() {
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let many = rayon::ThreadPoolBuilder::new().num_threads(7).build().unwrap();
    let digest =
        |pool: &rayon::ThreadPool| pool.install(|| Database::compute(3).unwrap().digest().to_owned());
    assert_eq!(digest(&alone), digest(&many));
}

fn refused(folder: &Path, damage: impl FnOnce(&mut Vec<u8>)) -> EndgameError {
    let path = folder.join("1101.slice");
    let good = std::fs::read(&path).unwrap();
    let mut bytes = good.clone();
    damage(&mut bytes);
    std::fs::write(&path, bytes).unwrap();
    let error = Database::open(folder, 3).unwrap_err();
    assert!(Database::build(folder, 3, |_| true).is_err(), "nothing is built on it");
    std::fs::write(&path, good).unwrap();
    assert!(error.to_string().contains("1101.slice"), "{error}");
    error
}

#[test]
fn cut_and_altered_files_are_refused() {
    let folder = three();
    let size = std::fs::metadata(folder.path().join("1101.slice")).unwrap().len() as usize;
    let mut random = Random::new(8);
    for _ in 0..200 {
        let (at, bit) = (random.below(size), random.below(8));
        refused(folder.path(), |bytes| bytes[at] ^= 1 << bit);
        refused(folder.path(), |bytes| bytes.truncate(at));
    }
    let refused = |damage: &dyn Fn(&mut Vec<u8>)| refused(folder.path(), damage);
    assert!(matches!(refused(&|bytes| bytes.push(0)), EndgameError::Length { .. }));
    assert!(matches!(refused(&|bytes| bytes[0] = b'P'), EndgameError::Magic { .. }));
    assert!(matches!(refused(&|bytes| bytes[8] = 2), EndgameError::Version { found: 2, .. }));
    assert!(matches!(refused(&|bytes| bytes[13] = 0), EndgameError::Slice { .. }));
    assert!(matches!(refused(&|bytes| bytes[500] ^= 1), EndgameError::Hash { .. }));
    assert!(matches!(refused(&|bytes| bytes.clear()), EndgameError::Length { found: 0, .. }));
}

#[test]
fn four_pieces_are_built_on_demand() {
    let folder = tempfile::tempdir().unwrap();
    let built = Database::open_or_build(&folder.path().join("new"), 2).unwrap();
    assert_eq!(built.probe(&"B:WK32:BK1".parse().unwrap()), Some(EndgameResult::Draw));
    let error = Database::open_or_build(folder.path(), 5).unwrap_err();
    assert!(matches!(error, EndgameError::Missing { pieces: 5, .. }), "{error}");
}
