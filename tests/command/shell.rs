//! Completions and manual pages, as a shell and a reader of manuals load them.

use crate::support::Place;

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
        assert!(place.run(&["completions", shell]).expect(0).stdout.contains("atoll"), "{shell}");
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
    }
}
