//! `atoll endgame`, driven as people and programs drive it.

use crate::support::Place;
use serde_json::Value;

fn counts(row: &Value) -> [u64; 3] {
    ["wins", "losses", "draws"].map(|key| row[key].as_u64().expect("a count"))
}

#[test]
fn stats_are_the_published_ones() {
    let place = Place::new();
    let stats = place.json(&["endgame", "stats", "--pieces", "3", "--json"]);
    assert_eq!(counts(&stats), [716 + 100_250, 402 + 87_305, 2_370 + 8_477]);
    assert_eq!(stats["positions"], 3_488 + 196_032);
    let slices = stats["slices"].as_array().expect("slices");
    assert_eq!(slices.len(), 16);
    let pieces = |row: &Value| {
        ["black_men", "black_kings", "white_men", "white_kings"]
            .map(|key| row[key].as_u64().expect("a number"))
    };
    let two: Vec<&Value> = slices.iter().filter(|row| pieces(row).iter().sum::<u64>() == 2).collect();
    let sum = |of: usize| two.iter().map(|row| counts(row)[of]).sum::<u64>();
    assert_eq!([sum(0), sum(1), sum(2)], [716, 402, 2_370]);
    let table = place.run(&["endgame", "stats", "--pieces", "3"]);
    assert_eq!(table.expect(0).stdout.lines().count(), 18);
}

#[test]
fn a_build_is_resumed_and_repeated() {
    let place = Place::new();
    let build = ["endgame", "build", "--pieces", "3", "--dir", "here", "--json"];
    let first = place.json(&build);
    assert_eq!((&first["positions"], &first["found"]), (&199_520.into(), &0.into()));
    assert_eq!(place.json(&build)["found"], 199_520);
    std::fs::remove_file(place.path().join("here/1101.slice")).expect("a slice");
    let again = place.json(&build);
    assert!(again["found"].as_u64() < Some(199_520), "{again}");
    assert_eq!(again["digest"], first["digest"]);
    let bytes = first["bytes"].as_f64().expect("bytes");
    assert!(bytes * 8.0 / 199_520.0 < 1.7, "{bytes} bytes");
}

#[test]
fn probes_tell_who_wins_and_how() {
    let place = Place::new();
    let probe = |fen: &str| place.json(&["endgame", "probe", "--fen", fen, "--json"]);
    let won = probe("B:WK32:BK23,K18");
    assert_eq!(won["verdict"], "win");
    assert!(!won["best"].as_array().expect("moves").is_empty());
    assert_eq!(probe("W:WK32:BK1")["verdict"], "draw");
    assert_eq!(probe("W:W:B1")["verdict"], "loss");
    let plain = place.run(&["endgame", "probe", "--fen", "B:WK32:BK23,K18"]);
    assert!(plain.expect(0).stdout.starts_with("win for black, best "), "{plain:?}");
}

#[test]
fn verdicts_agree_with_their_successors() {
    let checked = Place::new().run(&["endgame", "check", "--pieces", "3", "--samples", "100000"]);
    assert_eq!(checked.expect(0).stdout, "100000 positions of up to 3 pieces agree with their successors\n");
}

#[test]
fn what_cannot_be_is_refused() {
    let place = Place::new();
    let probe = |fen| place.run(&["endgame", "probe", "--fen", fen]);
    probe("B:W1").expect_error(78, &["--fen: column"]);
    probe("B:W29,30,31,32:B1,2,3,4").expect_error(78, &["at most 6 pieces", "`8`"]);
    probe("B:W30,31,32:B1,2").expect_error(78, &["atoll endgame build --pieces 5", "atoll-endgame"]);
    place.run(&["endgame", "build", "--pieces", "7"]).expect_error(2, &["7"]);
    place.json(&["endgame", "build", "--pieces", "2", "--json"]);
    let slice = place.path().join("atoll-endgame/1010.slice");
    let mut bytes = std::fs::read(&slice).expect("a slice");
    bytes[100] ^= 4;
    std::fs::write(&slice, &bytes).expect("it can be written");
    place.run(&["endgame", "stats", "--pieces", "2"]).expect_error(78, &["1010.slice", "hash"]);
    std::fs::write(&slice, &bytes[..99]).expect("it can be written");
    place.run(&["endgame", "build", "--pieces", "2"]).expect_error(78, &["1010.slice", "expected", "bytes"]);
    place.write("file", "");
    place.run(&["endgame", "build", "--pieces", "2", "--dir", "file"]).expect_error(1, &["file"]);
}

/// A file that is never sent: who does not have it computes nothing, and says which one it is.
#[test]
fn an_experiment_with_six_pieces_needs_a_folder_that_holds_them() {
    let place = Place::new();
    let digest = "0".repeat(64);
    let six = |keys: &str| {
        format!(
            "name = \"six\"\n[problem]\nkind = \"checkers\"\ndepth = 1\ngames = 1\n{keys}\n[algorithm]\nkind = \"es\"\n\
             parents = 2\noffspring = 2\n[islands]\ncount = 1\n[budget]\ngenerations = 1\n"
        )
    };
    place.write("vague.toml", six("endgame = { pieces = 6 }"));
    let vague = place.run(&["check", "--no-trial", "vague.toml"]);
    vague.expect_error(78, &["problem.endgame.digest", "atoll endgame build --pieces 6"]);
    place.write(
        "six.toml",
        six(&format!("endgame = {{ pieces = 6, digest = \"{digest}\" }}\nadjudicate = 6")),
    );
    place.run(&["check", "--no-trial", "six.toml"]).expect(0);
    for run in [&["run", "six.toml"][..], &["run", "six.toml", "--workers", "1"]] {
        place.run(run).expect_error(78, &["6 pieces", "ATOLL_ENDGAME"]);
    }
    std::fs::create_dir(place.path().join("empty")).expect("a folder");
    let named = crate::support::finish(place.command(&["run", "six.toml"]).env("ATOLL_ENDGAME", "empty"));
    named.expect_error(78, &["empty", "build it with `atoll endgame build --pieces 6`"]);
    // A worker may be told of a folder that holds nothing yet, but not of none.
    let worker = place.run(&[
        "worker",
        "--endgame",
        "absent",
        "--coordinator",
        "http://127.0.0.1:1",
        "--print-config",
    ]);
    worker.expect_error(78, &["endgame (flag --endgame)", "absent"]);
    let prints = ["worker", "--endgame", "empty", "--coordinator", "http://127.0.0.1:1", "--print-config"];
    place.run(&prints).expect(0);
}
