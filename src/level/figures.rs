//! The figures of a level as people read them: rounded, with units and with their errors.

use serde_json::Value;

/// What is shown of a figure.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) text: String,
}

/// The figures of either game, in the order in which they are read.
pub(super) fn figures(rating: &Value) -> Vec<Figure> {
    if rating["estimate"].is_number() { match3(rating) } else { lock_key(rating) }
}

/// A line for each figure.
pub(super) fn listing(rating: &Value) -> String {
    let line = |Figure { name, text }: Figure| format!("{name:<14} {text}\n");
    figures(rating).into_iter().map(line).collect()
}

fn match3(rating: &Value) -> Vec<Figure> {
    let number = |key: &str| rating[key].as_f64().unwrap_or(0.0);
    let plays = number("plays");
    let mean_error = number("deviation") / plays.max(1.0).sqrt();
    let figure = |name, text| Figure { name, text };
    vec![
        figure("plays", format!("{plays}")),
        figure("mean score", format!("{:.2} ± {:.2} points", number("mean"), mean_error)),
        figure("deviation", format!("{:.2} points", number("deviation"))),
        figure("estimate", format!("{} (normal estimate of passing, ± standard error)", estimate(rating))),
        figure("passed", format!("{} (share of plays, 95 % interval)", passed(rating))),
        figure("cascade", format!("{:.2} clearings for each scoring move", number("cascade"))),
    ]
}

fn lock_key(rating: &Value) -> Vec<Figure> {
    let of = |name, key: &str, unit: &str| Figure { name, text: format!("{}{unit}", plain(&rating[key])) };
    let mut figures = vec![
        of("difficulty E", "plain", " nodes, each leg searched afresh"),
        of("optimised", "optimised", " nodes, with what earlier legs found"),
        of("steps", "steps", " from entry to exit"),
        of("junctions", "junctions", " cells with more than two passages"),
        Figure {
            name: "verdict",
            text: format!("{}, {} states examined", plain(&rating["verdict"]), rating["states"]),
        },
    ];
    for (name, key) in [("opened", "solution"), ("locked out by", "trap")] {
        let locks = rating[key].as_array().into_iter().flatten();
        let letters: Vec<String> = locks.map(|lock| plain(&lock["colour"]).to_uppercase()).collect();
        if !letters.is_empty() {
            figures.push(Figure { name, text: letters.join(", ") });
        }
    }
    figures
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The normal estimate with its standard error.
pub(super) fn estimate(rating: &Value) -> String {
    let number = |key: &str| rating[key].as_f64().unwrap_or(0.0);
    format!("{:.4} ± {:.4}", number("estimate"), number("error"))
}

/// The share of plays that passed with its interval.
pub(super) fn passed(rating: &Value) -> String {
    let interval = |end: usize| rating["interval"][end].as_f64().unwrap_or(0.0);
    format!("{:.4} ({:.4} to {:.4})", rating["passed"].as_f64().unwrap_or(0.0), interval(0), interval(1))
}
