//! A page that needs nothing else: the tables of a tournament, and a plot of its ratings.

use super::outcome::{Encounter, Outcome, Standing};
use std::fmt::Write as _;
use tournament::Interval;

const STYLE: &str = "body{font:16px/1.45 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;\
                     color:#1b1f24;background:#fff}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}\
                     table{border-collapse:collapse;font-variant-numeric:tabular-nums;display:block;overflow-x:auto}\
                     th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid #d8dee4}\
                     th:first-child,td:first-child{text-align:left}td.self{background:#eef1f4}\
                     svg{max-width:100%;height:auto}.note{color:#57606a}";

/// The whole page.
pub(crate) fn html(run: &str, outcome: &Outcome<'_>) -> String {
    let mut page = String::new();
    push(
        &mut page,
        &format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>",
            escaped(run)
        ),
    );
    push(&mut page, "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">");
    push(&mut page, &format!("<style>{STYLE}</style></head><body><h1>Tournament {}</h1>", escaped(run)));
    let games: u64 = outcome.endings.iter().map(|(_, count)| count).sum();
    push(
        &mut page,
        &format!(
            "<p class=\"note\">{games} games, in pairs with colours swapped. Bars and ranges hold the true value with 95 % confidence.</p>"
        ),
    );
    push(&mut page, "<h2>Ratings</h2>");
    push(&mut page, &ratings_plot(&outcome.standings()));
    push(&mut page, &standings(outcome));
    push(&mut page, &encounters(&outcome.encounters()));
    push(&mut page, "<h2>Cross table</h2>");
    push(&mut page, &cross_table(outcome));
    push(&mut page, "<h2>How games ended</h2>");
    let ended = outcome.endings.iter().filter(|(_, count)| *count > 0);
    let rows: Vec<Vec<String>> =
        ended.map(|(ending, count)| vec![ending.word().to_owned(), count.to_string()]).collect();
    push(&mut page, &table(&["reason", "games"], &rows));
    push(&mut page, "</body></html>");
    page
}

fn standings(outcome: &Outcome<'_>) -> String {
    let row = |standing: &Standing<'_>| {
        let Standing { name, rating, tally, .. } = standing;
        let Interval { low, high } = tally.interval();
        vec![
            escaped(name),
            format!("{:.0}", rating.elo),
            format!("{:.0} to {:.0}", rating.low, rating.high),
            format!("{:.3}", tally.score()),
            format!("{low:.3} to {high:.3}"),
            tally.games().to_string(),
            tally.wins.to_string(),
            tally.draws.to_string(),
            tally.losses.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = outcome.standings().iter().map(row).collect();
    table(&["player", "Elo", "range", "score", "range", "games", "won", "drawn", "lost"], &rows)
}

fn encounters(encounters: &[Encounter<'_>]) -> String {
    if encounters.is_empty() {
        return String::new();
    }
    let row = |encounter: &Encounter<'_>| {
        let (tally, Interval { low, high }) = (&encounter.tally, encounter.tally.interval());
        let published = encounter.published.map_or(String::new(), |published| {
            let (wins, losses, draws) = (published.wins, published.losses, published.draws);
            format!("{wins} won, {losses} lost, {draws} drawn ({})", published.source)
        });
        vec![
            escaped(encounter.teams[0]),
            escaped(encounter.teams[1]),
            tally.wins.to_string(),
            tally.losses.to_string(),
            tally.draws.to_string(),
            format!("{:.3}", tally.score()),
            format!("{low:.3} to {high:.3}"),
            escaped(&published),
        ]
    };
    let rows: Vec<Vec<String>> = encounters.iter().map(row).collect();
    let heads = ["team", "against", "won", "lost", "drawn", "score", "range", "published"];
    format!("<h2>Teams</h2>{}", table(&heads, &rows))
}

/// Each row's score against each column, the darker the better.
fn cross_table(outcome: &Outcome<'_>) -> String {
    let standings = outcome.standings();
    let mut text = "<table><tr><th></th>".to_owned();
    (1..=standings.len()).for_each(|place| push(&mut text, &format!("<th>{place}</th>")));
    for (place, one) in standings.iter().enumerate() {
        push(&mut text, &format!("</tr><tr><td>{}. {}</td>", place + 1, escaped(one.name)));
        for other in &standings {
            let tally = outcome.table.between(one.player, other.player);
            let cell = match (one.player == other.player, tally.games()) {
                (true, _) => "<td class=\"self\"></td>".to_owned(),
                (_, 0) => "<td></td>".to_owned(),
                _ => {
                    let (score, share) = (tally.score(), (tally.score() * 60.0) as u32);
                    let title = format!("{} won, {} drawn, {} lost", tally.wins, tally.draws, tally.losses);
                    format!(
                        "<td title=\"{title}\" style=\"background:rgb(46 125 191/{share}%)\">{score:.2}</td>"
                    )
                }
            };
            push(&mut text, &cell);
        }
    }
    text + "</tr></table>"
}

/// A line for each player: where its rating lies.
fn ratings_plot(standings: &[Standing<'_>]) -> String {
    const LEFT: f64 = 220.0;
    const WIDTH: f64 = 640.0;
    const ROW: f64 = 26.0;
    let low = standings.iter().map(|standing| standing.rating.low).fold(f64::INFINITY, f64::min);
    let high = standings.iter().map(|standing| standing.rating.high).fold(f64::NEG_INFINITY, f64::max);
    let range = (high - low).max(1.0);
    let x = |elo: f64| LEFT + (elo - low) / range * WIDTH;
    let bottom = ROW * standings.len() as f64;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Ratings in Elo with their ranges\" \
         font-family=\"system-ui,sans-serif\" font-size=\"13\">",
        LEFT + WIDTH + 40.0,
        bottom + 34.0
    );
    for elo in ticks(low, high) {
        let x = x(elo);
        push(
            &mut svg,
            &format!("<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"{bottom}\" stroke=\"#d8dee4\"/>"),
        );
        let y = bottom + 18.0;
        push(
            &mut svg,
            &format!("<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\" fill=\"#57606a\">{elo:.0}</text>"),
        );
    }
    for (place, Standing { name, rating, .. }) in standings.iter().enumerate() {
        let y = ROW * (place as f64 + 0.5);
        let (from, to, at) = (x(rating.low), x(rating.high), x(rating.elo));
        let short: String = name.chars().take(28).collect();
        let (text_x, text_y) = (LEFT - 12.0, y + 4.5);
        push(
            &mut svg,
            &format!("<text x=\"{text_x}\" y=\"{text_y}\" text-anchor=\"end\">{}</text>", escaped(&short)),
        );
        push(
            &mut svg,
            &format!(
                "<line x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{y}\" y2=\"{y}\" stroke=\"#2e7dbf\" stroke-width=\"2\"/>"
            ),
        );
        push(&mut svg, &format!("<circle cx=\"{at:.1}\" cy=\"{y}\" r=\"4.5\" fill=\"#2e7dbf\"/>"));
    }
    svg + "</svg>"
}

/// Round numbers in a range, about six of them.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let steps = [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0];
    let step = steps.into_iter().find(|step| (high - low) / step <= 8.0).unwrap_or(10_000.0);
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    (first..=last).map(|tick| tick as f64 * step).collect()
}

fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = "<table><tr>".to_owned();
    for head in heads {
        push(&mut text, &format!("<th>{head}</th>"));
    }
    for row in rows {
        push(&mut text, "</tr><tr>");
        for cell in row {
            push(&mut text, &format!("<td>{cell}</td>"));
        }
    }
    text + "</tr></table>"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn push(text: &mut String, more: &str) {
    writeln!(text, "{more}").expect("writing into a string does not fail");
}
