//! The deck of openings and books, against the published list.

use checkers::{
    Book, Move, Opening, Position, Side, initial_opening, opening_of, openings, sharp_openings,
    stratified_openings, try_start,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// The published list: whether each is in the deck, its moves, and the position they lead to.
fn published() -> Vec<(bool, &'static str, &'static str)> {
    let lines = include_str!("data/openings_3move.csv").lines();
    let openings = lines.filter(|line| !line.starts_with('#') && !line.starts_with("status"));
    let fields = openings.map(|line| line.splitn(3, ',').collect::<Vec<_>>());
    fields.map(|fields| (fields[0] == "standard", fields[1], fields[2].trim_matches('"'))).collect()
}

fn text(opening: &Opening) -> String {
    let moves: Vec<String> = opening.moves.iter().map(|mv| format!("{}-{}", mv.from(), mv.to())).collect();
    moves.join(" ")
}

#[test]
fn the_deck_is_the_published_one() {
    let published = published();
    assert_eq!(published.len(), 174);
    let in_deck = published.iter().zip(1..).filter(|((in_deck, ..), _)| *in_deck);
    let expected: Vec<_> = in_deck.map(|((_, moves, fen), number)| (number, *moves, *fen)).collect();
    let found: Vec<_> = openings().iter().map(|o| (o.number, text(o), o.position.to_string())).collect();
    assert_eq!(found.len(), 156);
    assert!(found.iter().map(|(n, m, f)| (*n, m.as_str(), f.as_str())).eq(expected));
}

#[test]
fn every_opening_is_legal() {
    for opening in openings() {
        let end = opening.moves.iter().fold(Position::START, |position, mv| {
            assert!(position.legal_moves().contains(mv), "{opening:?}");
            position.play(mv)
        });
        assert_eq!(end, opening.position);
    }
}

#[test]
fn names_are_those_players_use() {
    let named = |text: &str| openings().iter().find(|o| self::text(o) == text).unwrap();
    assert_eq!(named("11-15 24-20 8-11").name, Some("Ayrshire Lassie"));
    assert_eq!(named("9-14 23-18 14-23").name, Some("Double Cross"));
    assert_eq!(named("9-13 21-17 5-9").name, None);
    assert_eq!(named("10-14 22-17 7-10").family(), "Denny");
    assert_eq!(named("12-16 24-20 8-12").family(), "Dundee");
    let families: BTreeSet<_> = openings().iter().map(Opening::family).collect();
    assert_eq!(families.len(), 7, "one for each first move");
}

#[test]
fn an_opening_is_shown_with_its_number_and_counts_no_deck() {
    let shown = |number| opening_of(number).unwrap().to_string();
    assert_eq!(shown(8), "opening 8 (Edinburgh Single)");
    assert_eq!(shown(158), "opening 158 (Bristol)");
    assert_eq!(shown(0), "the initial position");
    assert_eq!(shown(1003), "sharp start 1003");
    for opening in openings() {
        let shown = opening.to_string();
        assert!(shown.starts_with(&format!("opening {} (", opening.number)), "{shown}");
        assert!(!shown.contains(" of ") && !shown.contains("deck"), "{shown}");
    }
}

proptest! {
    #[test]
    fn a_subset_represents_the_deck(count in 1usize..200, seed: u64) {
        let drawn = stratified_openings(openings(), count, seed);
        prop_assert_eq!(drawn.len(), count.min(156));
        prop_assert!(drawn.is_sorted_by(|a, b| a.number < b.number), "each at most once");
        // Of the openings up to any place, the share in the subset is that of the whole deck, within one.
        for (place, opening) in openings().iter().enumerate() {
            let so_far = drawn.iter().filter(|o| o.number <= opening.number).count() as f64;
            let fair = (place + 1) as f64 * drawn.len() as f64 / 156.0;
            prop_assert!((so_far - fair).abs() <= 1.0, "{} of {} at {}", so_far, fair, place);
        }
    }

    #[test]
    fn a_book_plays_what_its_lines_play(seed: u64, picks: [prop::sample::Index; 5]) {
        let lines: Vec<_> = picks.iter().map(|pick| pick.get(openings())).collect();
        let text: Vec<String> = lines.iter().map(|o| format!("{} # {}\n", self::text(o), o.number)).collect();
        let book = Book::parse(&text.concat()).unwrap();
        let mut position = Position::START;
        for ply in 0..3 {
            let mv = book.choose(&position, seed).unwrap();
            prop_assert!(lines.iter().any(|o| o.moves[ply] == mv));
            position = position.play(&mv);
        }
        prop_assert_eq!(book.choose(&position, seed), None);
    }

    #[test]
    fn any_text_is_a_book_or_refused(text in "[0-9x# \\n-]{0,80}|\\PC{0,40}") {
        let _ = Book::parse(&text);
    }
}

#[test]
fn subsets_differ_by_seed_and_reach_every_opening() {
    let mut reached = BTreeSet::new();
    for seed in 0..100 {
        reached.extend(stratified_openings(openings(), 80, seed).iter().map(|o| o.number));
    }
    assert_eq!(reached.len(), 156);
    assert!(stratified_openings(openings(), 0, 1).is_empty());
}

#[test]
fn likely_moves_are_played_more_often() {
    let book = Book::parse("11-15 23-19\n11-15 22-18 15x22\n\n11-15\n# only a remark\n9-14").unwrap();
    let counts: Vec<(String, u32)> =
        book.moves(&Position::START).iter().map(|choice| (choice.mv.to_string(), choice.lines)).collect();
    assert_eq!(counts, [("11-15".to_owned(), 3), ("9-14".to_owned(), 1)]);
    let often = (0..4000).filter(|seed| book.choose(&Position::START, *seed).unwrap().from().number() == 11);
    assert!((2800..3200).contains(&often.count()));
}

#[test]
fn the_deck_is_a_book() {
    let book = Book::deck();
    assert_eq!(book.moves(&Position::START).iter().map(|choice| choice.lines).sum::<u32>(), 156);
    let first: Vec<Move> = book.moves(&Position::START).iter().map(|choice| choice.mv).collect();
    assert_eq!(first.len(), 7);
}

#[test]
fn mistakes_in_a_book_are_told_with_their_line() {
    let error = Book::parse("11-15 23-19\n11-15 23-20").unwrap_err().to_string();
    assert!(error.starts_with("line 2: ") && error.contains("`23-20`"), "{error}");
    let missing = Book::load(std::path::Path::new("no/such/book")).unwrap_err().to_string();
    assert!(missing.contains("readable book"), "{missing}");
}

#[test]
fn the_initial_position_is_a_deck_of_its_own() {
    let [start] = initial_opening() else { panic!("one opening") };
    assert_eq!((start.number, start.position, start.moves.len()), (0, Position::START, 0));
    assert_eq!(opening_of(0), Some(start));
    assert_eq!(start.family(), "Initial position");
    assert_eq!(stratified_openings(initial_opening(), 156, 3), [start]);
}

#[test]
fn sharp_starts_are_what_their_games_say() {
    let starts = sharp_openings();
    assert!(starts.len() >= 80);
    let list = include_str!("../data/sharp.csv");
    for (number, start) in (1001..).zip(starts) {
        assert_eq!((start.number, start.moves.len()), (number, 0));
        let men = |side| start.position.men(side).count();
        assert_eq!((men(Side::Black), men(Side::White)), (11, 11));
        assert!(!start.position.must_capture());
        assert_eq!(starts.iter().filter(|other| other.position == start.position).count(), 1);
        assert_eq!(opening_of(number), Some(start));
    }
    // The data can be made again: these games are the same everywhere.
    for start in [&starts[0], &starts[starts.len() - 1]] {
        let [black, drawn, white] = try_start(start.position, 8).results;
        let line = format!("{},{};{black},{drawn},{white}", start.number, start.position);
        assert!(list.lines().any(|other| other == line), "{line}");
    }
}
