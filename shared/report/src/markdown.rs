//! The report as Markdown, with its pictures in files beside it.

use crate::document::{Block, Document, Step, Table};
use crate::text::{put, spans};
use crate::{chart, game};

/// The report as Markdown. Galleries of small pictures are left out, but for the lines below these and the numbers.
pub fn render(document: &Document) -> String {
    let mut text = format!("# {}\n\n{}\n", plain(&document.title), inline(&document.headline));
    for tile in &document.tiles {
        let note = if tile.note.is_empty() { String::new() } else { format!(" ({})", inline(&tile.note)) };
        put!(text, "\n- **{}**: {}{note}", plain(&tile.label), inline(&tile.value));
    }
    text.push('\n');
    for section in &document.sections {
        put!(text, "\n## {}\n", plain(&section.title));
        section.blocks.iter().for_each(|part| block(&mut text, part));
    }
    put!(text, "\n---\n{}\n", inline(&document.made));
    text
}

/// The pictures that the Markdown shows, by file name.
pub fn pictures(document: &Document) -> Vec<(String, String)> {
    let blocks = document.sections.iter().flat_map(|section| &section.blocks).flat_map(Block::each);
    let figures = blocks.filter_map(|block| match block {
        Block::Figure(figure) => Some(&figure.picture),
        _ => None,
    });
    figures.map(|picture| (format!("{}.svg", picture.name), chart::standalone(picture))).collect()
}

/// A text without its meaning as Markdown.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for character in text.chars() {
        match character {
            '\n' | '\r' => plain.push(' '),
            '<' => plain.push_str("&lt;"),
            // Where there is no code, it begins none.
            '`' => plain.push('\''),
            '\\' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '$' | '!' => plain.extend(['\\', character]),
            other => plain.push(other),
        }
    }
    plain
}

fn inline(text: &str) -> String {
    // Inside code nothing has a meaning; in tables the bar does, even there.
    let span = |(is_code, span): (bool, &str)| {
        if is_code { format!("`{}`", span.replace('|', "\\|").replace('\n', " ")) } else { plain(span) }
    };
    spans(text).map(span).collect()
}

fn block(text: &mut String, block: &Block) {
    match block {
        Block::Text(paragraph) => put!(text, "\n{}\n", inline(paragraph)),
        Block::Notice(lines) => {
            text.push('\n');
            for line in lines {
                put!(text, "> {}  \n", inline(line));
            }
        }
        Block::Facts(facts) => {
            text.push('\n');
            for (name, value) in facts {
                put!(text, "- {}: {}\n", inline(name), inline(value));
            }
        }
        Block::Table(rows) => put!(text, "\n{}", table(rows)),
        Block::Commands(steps) => {
            for Step { what, command } in steps {
                put!(text, "\n{}\n\n{}", inline(what), fenced(command));
            }
        }
        Block::Code { title, text: code } => put!(text, "\n{}:\n\n{}", inline(title), fenced(code)),
        Block::Figure(figure) => {
            let picture = &figure.picture;
            put!(
                text,
                "\n![{}]({}.svg)\n\n{}\n",
                plain(&picture.title),
                picture.name,
                inline(&figure.caption)
            );
            figure.numbers.iter().for_each(|numbers| put!(text, "\n{}", table(numbers)));
        }
        Block::Gallery(gallery) => {
            // Galleries have no files: what stands below their pictures and the numbers are all there is.
            let below: Vec<&String> =
                gallery.pictures.iter().map(|(_, below)| below).filter(|below| !below.is_empty()).collect();
            if !below.is_empty() {
                put!(text, "\n**{}**\n\n", plain(&gallery.title));
                for line in below {
                    put!(text, "- {}\n", inline(line));
                }
            }
            gallery.numbers.iter().for_each(|numbers| put!(text, "\n{}", table(numbers)));
        }
        Block::Game(played) => {
            let [black, white] = played.players.each_ref().map(|name| plain(name));
            let (title, result) = (plain(&played.title), plain(&played.result));
            put!(text, "\n**{title}**: {black} (black) against {white} (white): {result}\n\n");
            put!(text, "{}\n", game::markdown(played));
        }
        Block::Beside(two) => two.iter().for_each(|part| self::block(text, part)),
    }
}

/// A block of code, fenced by more backticks than it holds in a row.
fn fenced(code: &str) -> String {
    let mut fence = "```".to_owned();
    while code.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}\n{}\n{fence}\n", code.trim_end())
}

/// A table below its caption.
pub fn table(table: &Table) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| inline(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = format!("{}\n\n{}", inline(&table.caption), line(&table.columns));
    put!(text, "|{}\n", "---|".repeat(table.columns.len()));
    table.rows.iter().for_each(|row| text.push_str(&line(row)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_text() {
        assert_eq!(inline("a*b `c|d` <script>"), "a\\*b `c\\|d` &lt;script>");
        assert_eq!(fenced("a\n```\nb\n"), "````\na\n```\nb\n````\n");
    }
}
