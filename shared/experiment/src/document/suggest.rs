//! Advice on names: the one that was probably meant, or the few that are allowed.

use super::diagnostics::shortened;
use strsim::damerau_levenshtein;

/// A list of names is given when it has at most this many.
const MAX_LISTED: usize = 16;
/// Names longer than this are no typing mistakes.
const MAX_NAME: usize = 64;
/// The longest name that a message shows whole.
const MAX_SHOWN: usize = 60;

/// The allowed name that was probably meant.
pub fn nearest<'a>(found: &str, allowed: &[&'a str]) -> Option<&'a str> {
    if found.chars().count() > MAX_NAME {
        return None;
    }
    let found = normal(found);
    let distance = |name: &str| damerau_levenshtein(&found, &normal(name));
    let near = allowed.iter().map(|name| (distance(name), *name)).min_by_key(|(distance, _)| *distance);
    let near = near.filter(|(distance, _)| *distance <= tolerance(&found)).map(|(_, name)| name);
    near.or_else(|| only_completion(&found, allowed))
}

/// Case and the kind of dash are never what distinguishes two names.
fn normal(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

fn tolerance(name: &str) -> usize {
    (name.chars().count() / 3).min(3)
}

/// `pop` for `population`, if nothing else begins like that.
fn only_completion<'a>(found: &str, allowed: &[&'a str]) -> Option<&'a str> {
    let mut completions = allowed.iter().filter(|name| found.len() >= 3 && normal(name).starts_with(found));
    let first = completions.next()?;
    completions.next().is_none().then_some(*first)
}

/// "did you mean …?" where that is clear, otherwise what is allowed where that is short.
pub(super) fn advice(found: &str, allowed: &[&str], what: &str) -> Option<String> {
    match nearest(found, allowed) {
        Some(name) => Some(format!("did you mean `{name}`?")),
        None if allowed.is_empty() || allowed.len() > MAX_LISTED => None,
        None => Some(format!("{what}: {}", listed(allowed, "and"))),
    }
}

/// "`a`, `b` or `c`".
pub(super) fn listed(names: &[&str], conjunction: &str) -> String {
    let quoted: Vec<_> = names.iter().map(|name| quoted(name)).collect();
    joined(&quoted, conjunction)
}

/// A name in backticks, cut if it is very long.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", shortened(name, MAX_SHOWN))
}

/// "a, b or c"; what only a null would satisfy, which TOML has not, leaves nothing to choose from.
pub(super) fn joined(parts: &[String], conjunction: &str) -> String {
    match parts {
        [] => "no value".to_owned(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {conjunction} {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let allowed = ["population", "crossover_rate", "mutation_rate", "elite"];
        assert_eq!(nearest("popluation", &allowed), Some("population"));
        assert_eq!(nearest("Crossover-Rate", &allowed), Some("crossover_rate"));
        assert_eq!(nearest("mutation", &allowed), Some("mutation_rate"));
        assert_eq!(nearest("elites", &allowed), Some("elite"));
        assert_eq!(nearest("colour", &allowed), None);
        assert_eq!(nearest("", &allowed), None);
        assert_eq!(nearest(&"p".repeat(1_000_000), &allowed), None);
    }

    #[test]
    fn the_first_of_equally_near_names_wins() {
        assert_eq!(nearest("cat", &["bat", "rat"]), Some("bat"));
    }

    #[test]
    fn lists_short_choices_only() {
        assert_eq!(advice("zzz", &["a", "b"], "allowed keys").unwrap(), "allowed keys: `a` and `b`");
        assert_eq!(advice("zzz", &["a"; 17], "allowed keys"), None);
    }
}
