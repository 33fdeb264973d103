//! The study's tables, as Markdown for people and as CSV for programs.

use super::{Board, Game, Outcome, Size, published, verdicts};
use report::Table;
use std::fmt::Write;

/// What one of the study's questions is answered by: on each board it has a table.
struct Question {
    title: &'static str,
    /// The number of its first table in the study.
    first_table: usize,
    columns: &'static [&'static str],
}

const QUESTIONS: [Question; 3] = [
    Question {
        title: "The simple genetic algorithm with three ways of repair",
        first_table: 2,
        columns: &["ga-r1", "ga-r2", "ga-r3"],
    },
    Question {
        title: "The simple genetic algorithm and the searches",
        first_table: 5,
        columns: &["ga-r1", "random", "greedy", "beam", "chokudai", "beam-5", "chokudai-3"],
    },
    Question {
        title: "The enhanced genetic algorithm and the hybrid",
        first_table: 8,
        columns: &["enhanced-first", "enhanced", "hybrid-first", "hybrid"],
    },
];

/// The best of these is what the study compares its enhanced algorithm with.
pub(super) const BEFORE: [&str; 5] = ["ga-r1", "random", "greedy", "beam", "chokudai"];
const BEST_BEFORE: &str = "best before";

/// The sizes of the study's boards, in the order of its tables.
const SIZES: [u32; 3] = [10, 20, 30];

impl Question {
    fn is_last(&self) -> bool {
        self.first_table == 8
    }

    /// The number of a board's table, if the study has it.
    fn number(&self, board: &Board) -> Option<usize> {
        let size = SIZES.iter().position(|&side| board.size == Size { width: side, height: side })?;
        Some(self.first_table + size)
    }

    /// The variants of a board that it is about; the last question takes those that no other asks for.
    fn columns(&self, board: &Board) -> Vec<String> {
        let all: Vec<&str> = board
            .games
            .iter()
            .flat_map(|game| &game.outcomes)
            .map(|outcome| outcome.variant.as_str())
            .collect();
        let mut columns: Vec<String> =
            self.columns.iter().filter(|name| all.contains(name)).map(|&name| name.to_owned()).collect();
        if self.is_last() {
            let is_known = |name: &str| QUESTIONS.iter().any(|question| question.columns.contains(&name));
            let mut others: Vec<String> =
                all.iter().filter(|name| !is_known(name)).map(|&name| name.to_owned()).collect();
            others.sort();
            others.dedup();
            columns.extend(others);
            if all.iter().any(|name| BEFORE.contains(name)) {
                columns.insert(0, BEST_BEFORE.to_owned());
            }
        }
        columns
    }
}

/// One entry of a table.
struct Entry<'a> {
    mean: f64,
    published: Option<f64>,
    gap: Option<f64>,
    outcome: Option<&'a Outcome>,
}

/// The highest of what some variants have.
pub(super) fn best_of(variants: &[&str], mean: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    variants.iter().filter_map(|variant| mean(variant)).reduce(f64::max)
}

fn entry<'a>(board: &Board, game: &'a Game, column: &str) -> Option<Entry<'a>> {
    let published = |variant: &str| published::mean(board.size, game.turns, variant);
    if column == BEST_BEFORE {
        let mean = best_of(&BEFORE, |variant| game.mean(variant))?;
        let published = best_of(&BEFORE, published);
        return Some(Entry { mean, published, gap: game.gap(mean), outcome: None });
    }
    let outcome = game.outcome(column)?;
    let mean = outcome.mean();
    Some(Entry { mean, published: published(column), gap: game.gap(mean), outcome: Some(outcome) })
}

/// The optimum as it is known: a number, or the interval that it lies in.
fn optimum(game: &Game) -> String {
    match &game.optimum {
        Some(solution) if solution.is_proved() => solution.score.to_string(),
        Some(solution) => format!("{}–{}", solution.score, solution.bound.unwrap_or(u32::MAX)),
        None => "–".to_owned(),
    }
}

/// What the tables show.
pub(super) const INTRODUCTION: &str = "Means over all repeats. In parentheses the published figure, behind it how far \
                    the mean stays below the proved optimum of the board, in percent of it. (The published boards were \
                    never printed; these are the ones that reproduce the published searches. 241.9 at 20 x 20 with 50 \
                    turns stands so in print, and probably means 341.9.)";

/// All tables.
pub(super) fn tables(boards: &[Board]) -> Vec<Table> {
    let each = QUESTIONS.iter().flat_map(|question| boards.iter().map(move |board| (question, board)));
    each.map(|(question, board)| (question, board, question.columns(board)))
        .filter(|(_, _, columns)| !columns.is_empty())
        .map(|(question, board, columns)| table(question, board, &columns))
        .collect()
}

/// All tables as a file.
pub(super) fn markdown(boards: &[Board]) -> String {
    let mut text = format!("# The maze study\n\n{INTRODUCTION}\n");
    for sentence in verdicts::sentences(boards) {
        push(&mut text, &format!("\n{sentence}\n"));
    }
    for Table { caption, columns, rows } in tables(boards) {
        push(&mut text, &format!("\n## {caption}\n\n| {} |\n", columns.join(" | ")));
        push(&mut text, &format!("|{}\n", "---|".repeat(columns.len())));
        for row in rows {
            push(&mut text, &format!("| {} |\n", row.join(" | ")));
        }
    }
    text
}

fn table(question: &Question, board: &Board, columns: &[String]) -> Table {
    let number = question.number(board).map_or(String::new(), |number| format!("Table {number}: "));
    let Size { width, height } = board.size;
    let row = |game: &Game| {
        let entries =
            columns.iter().map(|column| entry(board, game, column).as_ref().map_or("–".to_owned(), shown));
        std::iter::once(game.turns.to_string()).chain(entries).chain([optimum(game)]).collect()
    };
    let titles = columns.iter().map(|column| published::title(column));
    Table {
        caption: format!("{number}{} ({width} x {height})", question.title),
        columns: std::iter::once("turns".to_owned()).chain(titles).chain(["optimum".to_owned()]).collect(),
        rows: board.games.iter().map(row).collect(),
    }
}

fn shown(entry: &Entry<'_>) -> String {
    let published = entry.published.map_or(String::new(), |mean| format!(" ({mean:.1})"));
    let gap = entry.gap.map_or(String::new(), |gap| format!(" {gap:.1} %"));
    format!("{:.1}{published}{gap}", entry.mean)
}

/// A line for each entry of each table.
pub(super) fn csv(boards: &[Board]) -> String {
    let mut text =
        "table,width,height,turns,variant,mean,worst,best,published,optimum,bound,gap_percent\n".to_owned();
    for question in &QUESTIONS {
        for board in boards {
            for game in &board.games {
                for column in question.columns(board) {
                    if let Some(entry) = entry(board, game, &column) {
                        push(&mut text, &line(question, board, game, &column, &entry));
                    }
                }
            }
        }
    }
    text
}

fn line(question: &Question, board: &Board, game: &Game, column: &str, entry: &Entry<'_>) -> String {
    let solution = game.optimum.as_ref();
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    format!(
        "{},{},{},{},{},{},{},{},{},{},{},{}\n",
        number(question.number(board).map(|number| number as f64)),
        board.size.width,
        board.size.height,
        game.turns,
        quoted(column),
        entry.mean,
        number(entry.outcome.map(Outcome::worst)),
        number(entry.outcome.map(Outcome::best)),
        number(entry.published),
        number(solution.map(|solution| f64::from(solution.score))),
        number(solution.and_then(|solution| solution.bound).map(f64::from)),
        entry.gap.map_or(String::new(), |gap| format!("{gap:.3}")),
    )
}

/// A name as CSV writes it.
fn quoted(name: &str) -> String {
    if name.contains([',', '"', '\n']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.to_owned()
    }
}

fn push(text: &mut String, more: &str) {
    text.write_str(more).expect("writing into a string does not fail");
}
