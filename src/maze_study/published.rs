//! The figures that were published: means of ten runs on one board a size.

use super::Size;

/// The published mean of a variant, if there is one.
pub(super) fn mean(size: Size, turns: u32, variant: &str) -> Option<f64> {
    let column = COLUMNS.iter().position(|(name, _)| *name == variant)?;
    let is_row = |row: &Vec<f64>| row[0] == f64::from(size.width) && row[1] == f64::from(turns);
    let row = rows().find(|row| size.width == size.height && is_row(row))?;
    Some(row[2 + column])
}

/// What a variant is called in tables; the study's own by the study's words.
pub(super) fn title(variant: &str) -> String {
    let column = COLUMNS.iter().chain(&FURTHER).find(|(name, _)| *name == variant);
    column.map_or(variant, |(_, title)| title).to_owned()
}

/// Variants beside those of the study.
const FURTHER: [(&str, &str); 4] = [
    ("beam-5", "BS, width 5"),
    ("chokudai-3", "CS, width 3"),
    ("enhanced-first", "Enhanced GA, founders"),
    ("hybrid-first", "hybrid, founders"),
];

/// The variants of the study by their names here, in the order of its columns, and there.
const COLUMNS: [(&str, &str); 8] = [
    ("ga-r1", "GA_r1"),
    ("ga-r2", "GA_r2"),
    ("ga-r3", "GA_r3"),
    ("random", "RS"),
    ("greedy", "GS"),
    ("beam", "BS"),
    ("chokudai", "CS"),
    ("enhanced", "Enhanced GA"),
];

/// Size, turns, and the mean of each column.
fn rows() -> impl Iterator<Item = Vec<f64>> {
    let table = include_str!("published.csv");
    let lines = table.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    lines.map(|line| line.split(',').map(|value| value.parse().expect("the table holds numbers")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_their_place() {
        assert_eq!(rows().count(), 30);
        assert!(rows().all(|row| row.len() == 10));
        let at = |width, height, turns, variant| mean(Size { width, height }, turns, variant);
        assert_eq!(at(10, 10, 5, "random"), Some(17.7));
        assert_eq!(at(30, 30, 50, "enhanced"), Some(342.5));
        assert_eq!(at(30, 30, 50, "hybrid"), None);
        assert_eq!(at(30, 20, 50, "beam"), None);
        assert_eq!((title("beam"), title("mine")), ("BS".to_owned(), "mine".to_owned()));
    }
}
