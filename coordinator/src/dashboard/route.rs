//! All paths of the dashboard: the only list of them. What is not here does not exist; a method that is not named is
//! rejected.

/// What a caller needs for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// The right to look.
    View,
    /// The right to change something.
    Operate,
}

/// A path and what may be done with it. Segments in braces stand for anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The path.
    pub path: &'static str,
    /// The methods, and what each needs.
    pub methods: &'static [(&'static str, Needs)],
}

const LOOK: &[(&str, Needs)] = &[("GET", Needs::View)];
const ACT: &[(&str, Needs)] = &[("POST", Needs::Operate)];
const OPEN: &[(&str, Needs)] = &[("GET", Needs::Nothing)];

const fn route(path: &'static str, methods: &'static [(&'static str, Needs)]) -> Route {
    Route { path, methods }
}

/// Every path.
pub const ROUTES: &[Route] = &[
    route("/", LOOK),
    route("/runs/{run}", LOOK),
    route("/workers", LOOK),
    route("/play", LOOK),
    route("/login", &[("GET", Needs::Nothing), ("POST", Needs::Nothing)]),
    route("/logout", &[("POST", Needs::Nothing)]),
    route("/assets/dashboard.css", OPEN),
    route("/assets/dashboard.js", OPEN),
    route("/assets/games.js", OPEN),
    route("/assets/play.js", OPEN),
    route("/api/v1/openapi.json", OPEN),
    route("/api/v1/stream", LOOK),
    route("/api/v1/runs", &[("GET", Needs::View), ("POST", Needs::Operate)]),
    route("/api/v1/runs/{run}", LOOK),
    route("/api/v1/runs/{run}/explain", LOOK),
    route("/api/v1/runs/{run}/islands", LOOK),
    route("/api/v1/runs/{run}/leases", LOOK),
    route("/api/v1/runs/{run}/epochs", LOOK),
    route("/api/v1/runs/{run}/statistics", LOOK),
    route("/api/v1/runs/{run}/champions", LOOK),
    route("/api/v1/runs/{run}/strength", LOOK),
    route("/api/v1/runs/{run}/artifacts", LOOK),
    route("/api/v1/runs/{run}/events", LOOK),
    route("/api/v1/runs/{run}/pause", ACT),
    route("/api/v1/runs/{run}/resume", ACT),
    route("/api/v1/runs/{run}/cancel", ACT),
    route("/api/v1/runs/{run}/extend", ACT),
    route("/api/v1/play", ACT),
    route("/api/v1/workers", LOOK),
    route("/api/v1/workers/{worker}/drain", ACT),
];

impl Route {
    /// The route of a path, and what stands for its segments in braces.
    pub(crate) fn of(path: &str) -> Option<(&'static Self, Vec<String>)> {
        ROUTES.iter().find_map(|route| route.matches(path).map(|parts| (route, parts)))
    }

    fn matches(&self, path: &str) -> Option<Vec<String>> {
        let (mut own, mut given) = (self.path.split('/'), path.split('/'));
        let mut parts = vec![];
        loop {
            match (own.next(), given.next()) {
                (None, None) => return Some(parts),
                (Some(own), Some(given)) if own.starts_with('{') && !given.is_empty() => {
                    parts.push(super::decoded(given));
                }
                (Some(own), Some(given)) if own == given => {}
                _ => return None,
            }
        }
    }

    /// What a method needs here; nothing if it is not allowed.
    pub(crate) fn needs(&self, method: &str) -> Option<Needs> {
        self.methods.iter().find(|(known, _)| *known == method).map(|(_, needs)| *needs)
    }

    /// The methods, as a header names them.
    pub(crate) fn allowed(&self) -> String {
        self.methods.iter().map(|(method, _)| *method).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_exact() {
        let of = |path| Route::of(path).map(|(route, parts)| (route.path, parts));
        assert_eq!(of("/"), Some(("/", vec![])));
        assert_eq!(of("/runs/a%2Fb"), Some(("/runs/{run}", vec!["a/b".to_owned()])));
        assert_eq!(of("/api/v1/runs/x/pause"), Some(("/api/v1/runs/{run}/pause", vec!["x".to_owned()])));
        for other in
            ["", "//", "/runs/", "/runs/a/", "/api/v1/runs/a/destroy", "/API/v1/runs", "/api/v2/runs"]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn whatever_changes_something_needs_an_operator() {
        for route in ROUTES {
            for (method, needs) in route.methods {
                let is_change = *method != "GET" && !matches!(route.path, "/login" | "/logout");
                assert_eq!(is_change, *needs == Needs::Operate, "{method} {}", route.path);
            }
        }
    }
}
