//! Completions and manual pages, as a shell and a reader of manuals load them.

use crate::support::Place;

/// Whether a program is installed.
fn has(program: &str) -> bool {
    let found = std::process::Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    found.is_ok_and(|found| found.status.success())
}

#[test]
fn completions_load_in_a_shell() {
    let place = Place::new();
    let script = place.run(&["completions", "bash"]);
    place.write("atoll.bash", &script.expect(0).stdout);
    let words = "COMP_WORDS=(atoll ver); COMP_CWORD=1; _atoll atoll ver atoll; echo \"${COMPREPLY[*]}\"";
    let load = format!("source ./atoll.bash && complete -p atoll && {words}");
    let loaded = crate::support::finish(&mut place.command_of("bash", &["--norc", "-c", &load]));
    let said = &loaded.expect(0).stdout;
    assert!(said.contains("-F _atoll") && said.lines().last() == Some("verify"), "{said}");
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let script = place.run(&["completions", shell]);
        assert!(script.expect(0).stdout.contains("verify"), "{shell}");
        place.write(shell, &script.stdout);
        // Where the shell is installed, it reads the script without running it.
        if ["zsh", "fish"].contains(&shell) && has(shell) {
            crate::support::finish(&mut place.command_of(shell, &["-n", shell])).expect(0);
        }
    }
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let place = Place::new();
    place.run(&["man", "--to", "pages"]).expect(0);
    let page = |name: &str| std::fs::read_to_string(place.path().join("pages").join(name)).unwrap();
    assert!(page("atoll.1").contains(".SH SUBCOMMANDS"));
    for command in ["run", "verify", "coordinator", "checkers-match", "tournament-page"] {
        let text = page(&format!("atoll-{command}.1"));
        assert!(text.contains(".TH ") && text.contains(".SH OPTIONS"), "{command}");
        // Unfilled: each example stays on a line of its own.
        assert!(text.contains("\n.SH EXAMPLES\n.nf\n  atoll ") && text.contains("\n.fi\n"), "{command}");
        assert!(!text.contains(".SH EXTRA"), "{command}");
    }
    // Where `groff` is installed, it reads every page without a warning.
    if has("groff") {
        for entry in std::fs::read_dir(place.path().join("pages")).unwrap() {
            let file = entry.unwrap().path();
            let arguments = ["-man", "-ww", "-Tutf8", "-K", "utf-8", file.to_str().unwrap()];
            let read = crate::support::finish(&mut place.command_of("groff", &arguments));
            assert!(read.expect(0).stderr.is_empty() && read.stdout.contains("atoll"), "{read:?}");
        }
    }
    // Where `man` is installed, it finds and formats the pages of a folder.
    if has("man") && has("groff") {
        let pages = place.path().join("share/man/man1");
        place.run(&["man", "--to", "share/man/man1"]).expect(0);
        assert!(pages.join("atoll.1").is_file());
        let mut man = place.command_of("man", &["-M", "share/man", "atoll-verify"]);
        let shown =
            crate::support::finish(man.env("MANPAGER", "cat").env("MANWIDTH", "80").env("LC_ALL", "C"));
        assert!(shown.expect(0).stdout.contains("recompute"), "{shown:?}");
        let is_alone = |line: &str| line.trim() == "atoll verify latest  check the newest run";
        assert!(shown.stdout.lines().any(is_alone), "{shown:?}");
    }
}
