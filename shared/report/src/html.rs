//! The page: one file that needs nothing else, no network and no script.

use crate::document::{Block, Document, Figure, Gallery, Section, Step, Table, Tile};
use crate::text::{escaped, put, spans};
use crate::{chart, game};

/// Nothing may be loaded, whatever a page holds.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// Rows of a table that are shown at once; a longer one is folded.
const UNFOLDED: usize = 30;

/// The style of all pages, light and dark, for pages that are made elsewhere.
pub fn style() -> String {
    format!("{}{}", chart::STYLE, include_str!("page.css"))
}

/// The report as a page.
pub fn render(document: &Document) -> String {
    let title = escaped(&document.title);
    let refresh = document
        .refresh
        .map_or(String::new(), |seconds| format!("<meta http-equiv=\"refresh\" content=\"{seconds}\">\n"));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n{refresh}\
         <title>{title}</title>\n<style>\n{}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n\
         <p class=\"headline\">{}</p>\n",
        style(),
        inline(&document.headline)
    );
    tiles(&mut page, &document.tiles);
    contents(&mut page, &document.sections);
    page.push_str("</header>\n<main>\n");
    for section in &document.sections {
        put!(page, "<section id=\"{}\">\n<h2>{}</h2>\n", section.id, escaped(&section.title));
        section.blocks.iter().for_each(|part| block(&mut page, part));
        page.push_str("</section>\n");
    }
    put!(page, "</main>\n<footer>{}</footer>\n", inline(&document.made));
    if has_games(document) {
        put!(page, "<script>\n{}</script>\n", include_str!("page.js"));
    }
    page + "</body>\n</html>\n"
}

fn has_games(document: &Document) -> bool {
    let mut blocks = document.sections.iter().flat_map(|section| &section.blocks).flat_map(Block::each);
    blocks.any(|block| matches!(block, Block::Game(_)))
}

/// A text with its code.
pub(crate) fn inline(text: &str) -> String {
    let span = |(is_code, span): (bool, &str)| {
        if is_code { format!("<code>{}</code>", escaped(span)) } else { escaped(span) }
    };
    spans(text).map(span).collect()
}

pub(crate) fn tiles(page: &mut String, tiles: &[Tile]) {
    if tiles.is_empty() {
        return;
    }
    page.push_str("<dl class=\"tiles\">\n");
    for Tile { label, value, note } in tiles {
        let note = if note.is_empty() {
            String::new()
        } else {
            format!("<dd class=\"remark\">{}</dd>", inline(note))
        };
        let (label, value) = (escaped(label), inline(value));
        put!(page, "<div class=\"tile\"><dt>{label}</dt><dd class=\"value\">{value}</dd>{note}</div>\n");
    }
    page.push_str("</dl>\n");
}

fn contents(page: &mut String, sections: &[Section]) {
    page.push_str("<nav aria-label=\"Sections\">\n");
    for Section { id, title, .. } in sections {
        put!(page, "<a href=\"#{id}\">{}</a>\n", escaped(title));
    }
    page.push_str("</nav>\n");
}

pub(crate) fn block(page: &mut String, block: &Block) {
    match block {
        Block::Text(text) => put!(page, "<p>{}</p>\n", inline(text)),
        Block::Notice(lines) => {
            page.push_str("<div class=\"notice\" role=\"note\">\n");
            for line in lines {
                put!(page, "<p>{}</p>\n", inline(line));
            }
            page.push_str("</div>\n");
        }
        Block::Facts(facts) => {
            page.push_str("<dl class=\"facts\">\n");
            for (name, value) in facts {
                put!(page, "<dt>{}</dt><dd>{}</dd>\n", inline(name), inline(value));
            }
            page.push_str("</dl>\n");
        }
        Block::Table(table) if table.rows.len() > UNFOLDED => {
            let rows = table.rows.len();
            put!(page, "<details><summary>{} ({rows} rows)</summary>\n", inline(&table.caption));
            scrolled(page, table);
            page.push_str("</details>\n");
        }
        Block::Table(table) => scrolled(page, table),
        Block::Commands(steps) => {
            for Step { what, command } in steps {
                put!(page, "<p>{}</p>\n<pre tabindex=\"0\">{}</pre>\n", inline(what), escaped(command));
            }
        }
        Block::Code { title, text } => put!(
            page,
            "<details><summary>{}</summary><pre tabindex=\"0\">{}</pre></details>\n",
            inline(title),
            escaped(text)
        ),
        Block::Figure(picture) => figure(page, picture),
        Block::Gallery(pictures) => gallery(page, pictures),
        Block::Game(played) => page.push_str(&game::html(played)),
        Block::Beside(two) => {
            // A board is square, a curve is wide; two curves are alike.
            let is_even = two.iter().all(|part| matches!(part, Block::Figure(_)));
            put!(page, "<div class=\"beside{}\">\n", if is_even { " even" } else { "" });
            for part in two.iter() {
                page.push_str("<div>\n");
                self::block(page, part);
                page.push_str("</div>\n");
            }
            page.push_str("</div>\n");
        }
    }
}

fn figure(page: &mut String, figure: &Figure) {
    let Figure { picture, caption, numbers } = figure;
    let name = escaped(&picture.title);
    put!(
        page,
        "<figure><figcaption><strong>{name}</strong> {}</figcaption>\n\
         <div class=\"scroll{}\" tabindex=\"0\" role=\"group\" aria-label=\"{name}\">{}</div>\n",
        inline(caption),
        if picture.narrow.is_some() { " wide" } else { "" },
        picture.svg
    );
    if let Some(narrow) = &picture.narrow {
        put!(page, "<div class=\"narrow\">{narrow}</div>\n");
    }
    folded(page, numbers.as_ref());
    page.push_str("</figure>\n");
}

fn gallery(page: &mut String, gallery: &Gallery) {
    let Gallery { title, caption, legend, pictures, numbers, folded: is_folded } = gallery;
    put!(page, "<figure><figcaption><strong>{}</strong> {}</figcaption>\n", escaped(title), inline(caption));
    keys(page, legend);
    if *is_folded {
        put!(page, "<details><summary>Show all {}</summary>\n", pictures.len());
    }
    let least = pictures.iter().map(|(picture, _)| picture.width).fold(f64::INFINITY, f64::min);
    let class = match least {
        _ if pictures.len() == 1 && least > 700.0 => "whole",
        width if width < 200.0 => "tiny",
        width if width < 330.0 => "small",
        _ => "large",
    };
    put!(page, "<div class=\"gallery {class}\">\n");
    for (picture, below) in pictures {
        let below = if below.is_empty() { String::new() } else { format!("<div>{}</div>", inline(below)) };
        put!(page, "<div>{}{below}</div>\n", picture.svg);
    }
    page.push_str("</div>\n");
    if *is_folded {
        page.push_str("</details>\n");
    }
    folded(page, numbers.as_ref());
    page.push_str("</figure>\n");
}

/// What the colours of curves mean.
fn keys(page: &mut String, legend: &[(usize, String)]) {
    if legend.is_empty() {
        return;
    }
    page.push_str("<div class=\"legend\">");
    for (colour, label) in legend {
        let class = chart::curve_class(*colour);
        put!(
            page,
            "<span><svg class=\"chart\" viewBox=\"0 0 24 10\" aria-hidden=\"true\"><path class=\"{class}\" \
             d=\"M0 5h24\"/></svg>{}</span>",
            inline(label)
        );
    }
    page.push_str("</div>\n");
}

fn folded(page: &mut String, numbers: Option<&Table>) {
    if let Some(numbers) = numbers {
        page.push_str("<details><summary>The numbers</summary>\n");
        scrolled(page, numbers);
        page.push_str("</details>\n");
    }
}

pub(crate) fn scrolled(page: &mut String, table: &Table) {
    put!(
        page,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\"><table>",
        escaped(&table.caption)
    );
    let numeric: Vec<bool> = (0..table.columns.len()).map(|column| is_numeric(table, column)).collect();
    let class = |column: usize| if numeric[column] { " class=\"n\"" } else { "" };
    put!(page, "<caption>{}</caption><thead><tr>", inline(&table.caption));
    for (at, column) in table.columns.iter().enumerate() {
        put!(page, "<th scope=\"col\"{}>{}</th>", class(at), inline(column));
    }
    page.push_str("</tr></thead><tbody>\n");
    for row in &table.rows {
        page.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            put!(page, "<td{}>{}</td>", class(at), inline(cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

/// Whether all cells of a column are numbers, or dashes in their place.
fn is_numeric(table: &Table, column: usize) -> bool {
    let is_number = |cell: &String| {
        cell.starts_with(['–', '-', '+']) || cell.starts_with(|first: char| first.is_ascii_digit())
    };
    !table.rows.is_empty() && table.rows.iter().filter_map(|row| row.get(column)).all(is_number)
}
