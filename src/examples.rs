//! Examples at the end of every `--help`, in one place. The tests parse each of them, and run those that can be run.

use clap::Command;

/// The words of a command, and its examples: what to type, and what it does.
type Examples = (&'static [&'static str], &'static [(&'static str, &'static str)]);

const EXAMPLES: &[Examples] = &[
    (
        &[],
        &[
            ("atoll init my.toml", "write an experiment to start from"),
            ("atoll run my.toml", "run it"),
            ("atoll report latest", "write its report"),
        ],
    ),
    (&["checkers"], &[("atoll checkers match material random --pairs 20", "play 40 games")]),
    (&["tournament"], &[("atoll tournament table latest", "print the ratings of the newest tournament")]),
    (&["endgame"], &[("atoll endgame build --pieces 3", "build the database of up to 3 pieces")]),
    (&["endgame", "stats"], &[("atoll endgame stats --pieces 3", "count wins, draws and losses")]),
    (
        &["endgame", "probe"],
        &[("atoll endgame probe --fen B:W18:BK1", "look a position up: its value and its moves")],
    ),
    (&["endgame", "check"], &[("atoll endgame check --pieces 3", "compare the database with a search")]),
    (
        &["bench", "strength"],
        &[(
            "atoll bench strength material --depth 2 --pairs 2",
            "measure a player against the ladder at 2 plies",
        )],
    ),
    (&["maze"], &[("atoll maze board --seed 3", "print a board")]),
    (&["level"], &[("atoll level ladder latest", "write the levels of the newest run")]),
    (&["level", "show"], &[("atoll level show level.txt", "print a level")]),
    (&["level", "rate"], &[("atoll level rate level.txt --json", "measure how hard a level is")]),
    (&["level", "export"], &[("atoll level export level.txt --to svg", "convert a level to a picture")]),
    (&["level", "study"], &[("atoll level study session.json", "evaluate a saved session of a person")]),
    (
        &["run"],
        &[
            ("atoll run examples/quickstart.toml", "run an experiment, or resume it"),
            (
                "atoll run examples/quickstart.toml --seed 7 --workers 2",
                "another seed, in two worker processes",
            ),
        ],
    ),
    (&["resume"], &[("atoll resume latest", "resume the newest run")]),
    (&["extend"], &[("atoll extend quickstart --generations 4000", "continue a finished run")]),
    (
        &["check"],
        &[("atoll check examples/quickstart.toml", "show every mistake, and about how long it takes")],
    ),
    (&["schema"], &[("atoll schema --markdown", "print the keys of experiment files as tables")]),
    (
        &["runs"],
        &[
            ("atoll runs --label paper", "list the runs with a label"),
            ("atoll runs --json", "list the runs for a program"),
        ],
    ),
    (
        &["label"],
        &[
            ("atoll label latest paper figure-3", "add two labels to the newest run"),
            ("atoll label latest --remove figure-3", "remove one of them"),
        ],
    ),
    (&["verify"], &[("atoll verify latest", "check the newest run")]),
    (&["export"], &[("atoll export quickstart --to champions", "write CSV and JSON files to a folder")]),
    (&["report"], &[("atoll report latest --open", "write the report of the newest run and open it")]),
    (&["coordinator"], &[("atoll coordinator --store s3://bucket/atoll", "serve the runs of a bucket")]),
    (
        &["worker"],
        &[(
            "atoll worker --coordinator https://atoll.example:7440 --tls-ca ca.pem",
            "compute for a coordinator",
        )],
    ),
    (
        &["batch"],
        &[(
            "atoll batch --coordinator-config c.toml --worker-config w.toml --index 0",
            "start the first pod, the coordinator",
        )],
    ),
    (&["submit"], &[("atoll submit examples/quickstart.toml --wait", "run an experiment on a coordinator")]),
    (&["watch"], &[("atoll watch latest", "watch the newest run")]),
    (&["dashboard"], &[("atoll dashboard --open", "look at the runs of a store in a browser")]),
    (&["explain"], &[("atoll explain latest", "explain why the newest run makes no progress")]),
    (&["logs"], &[("atoll logs latest --follow", "print events of the newest run until it ends")]),
    (&["workers"], &[("atoll workers --json", "list the workers for a program")]),
    (&["drain"], &[("atoll drain worker-1", "give a worker no more work; --off gives it work again")]),
    (&["pause"], &[("atoll pause quickstart", "pause a run; --off resumes it")]),
    (&["cancel"], &[("atoll cancel quickstart", "end a run; submitting it again resumes it")]),
    (&["doctor"], &[("atoll doctor --store atoll-store", "check a store, the clock and the ports")]),
    (&["certs"], &[("atoll certs --host atoll.example", "make certificates and tokens for a coordinator")]),
    (&["bench"], &[("atoll bench checkers", "measure everything about checkers")]),
    (&["checkers", "perft"], &[("atoll checkers perft --depth 8", "count move sequences of 8 plies")]),
    (&["checkers", "best"], &[("atoll checkers best --player material --depth 8", "find a move")]),
    (&["checkers", "match"], &[("atoll checkers match material random --pairs 20", "play 40 games")]),
    (&["checkers", "sharp"], &[("atoll checkers sharp --count 3 --every 1000", "find 3 sharp starts")]),
    (&["checkers", "species"], &[("atoll checkers species latest", "find species in the newest run")]),
    (&["tournament", "table"], &[("atoll tournament table latest", "print the ratings")]),
    (&["tournament", "games"], &[("atoll tournament games latest", "print the games as PDN")]),
    (&["tournament", "page"], &[("atoll tournament page latest", "write the page of a tournament")]),
    (&["ratings"], &[("atoll ratings latest", "rate the champions of the newest run")]),
    (&["endgame", "build"], &[("atoll endgame build --pieces 3", "build the database of up to 3 pieces")]),
    (&["engine"], &[("atoll engine material --depth 8", "serve a player to a draughts program")]),
    (&["analyse"], &[("atoll analyse atoll-games.pdn material", "comment recorded games")]),
    (&["play"], &[("atoll play material", "play against the material player")]),
    (&["maze", "solve"], &[("atoll maze solve --algorithm exact --turns 20", "solve a board with a proof")]),
    (&["maze", "board"], &[("atoll maze board --seed 3", "print a board")]),
    (
        &["level", "ladder"],
        &[("atoll level ladder latest", "write the levels of a run, and a page to play them on")],
    ),
    (&["repair"], &[("atoll repair quickstart", "show what is damaged in a run, and repair it")]),
    (&["rm"], &[("atoll rm quickstart --yes", "remove a run without asking")]),
    (&["gc"], &[("atoll gc", "complete a removal that was interrupted")]),
    (&["backup"], &[("atoll backup monday", "copy all runs to a folder, also while they are computed")]),
    (&["restore"], &[("atoll restore monday --store restored", "copy a backup to an empty store")]),
    (&["init"], &[("atoll init my.toml", "write a commented experiment")]),
    (&["completions"], &[("atoll completions bash", "print the completions of bash")]),
    (&["man"], &[("atoll man --to man", "write manual pages to a folder")]),
];

/// The command with its examples.
pub(crate) fn added(command: Command) -> Command {
    EXAMPLES.iter().fold(command, |command, (words, examples)| {
        let width = examples.iter().map(|(typed, _)| typed.len()).max().unwrap_or(0);
        let lines: Vec<String> =
            examples.iter().map(|(typed, what)| format!("  {typed:<width$}  {what}")).collect();
        let text = format!("EXAMPLES:\n{}", lines.join("\n"));
        match words {
            [] => command.after_help(text),
            [name] => command.mut_subcommand(name, |found| found.after_help(text)),
            [group, name] => command
                .mut_subcommand(group, |group| group.mut_subcommand(name, |found| found.after_help(text))),
            _ => command,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_example_is_a_command() {
        for (words, examples) in EXAMPLES {
            for (typed, _) in *examples {
                let typed: Vec<&str> = typed.split_whitespace().collect();
                assert_eq!(typed[1..][..words.len()], **words, "{typed:?}");
                let parsed = crate::Arguments::command().try_get_matches_from(&typed);
                assert!(parsed.is_ok(), "{typed:?}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn every_command_has_examples() {
        fn check(command: &Command) {
            assert!(command.get_after_help().is_some(), "{} has examples", command.get_name());
            command.get_subcommands().filter(|command| !command.is_hide_set()).for_each(check);
        }
        check(&added(crate::Arguments::command()));
    }
}
