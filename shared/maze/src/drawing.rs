//! Boards drawn for people: in a terminal and as SVG, with a path on them.

use crate::board::{Board, Cell};
use crate::direction::Direction;
use crate::solution::BlockedMove;
use std::fmt::Write;

/// Side of a cell in SVG, in pixels.
const SIDE: usize = 24;

/// Where a path comes by.
struct Trail {
    /// The cells in order, the start first.
    cells: Vec<Cell>,
    /// For each cell of the board, whether it lies on the path.
    visited: Vec<bool>,
}

impl Trail {
    fn new(board: &Board, path: &[Direction]) -> Result<Self, BlockedMove> {
        board.collect(path)?;
        let mut cells = vec![board.start()];
        cells.extend(path.iter().scan(board.start(), |cell, &way| {
            *cell = board.step(*cell, way)?;
            Some(*cell)
        }));
        let mut visited = vec![false; board.cells()];
        for &cell in &cells {
            visited[usize::from(cell)] = true;
        }
        Ok(Self { cells, visited })
    }

    fn end(&self) -> Cell {
        *self.cells.last().expect("a trail has its start")
    }
}

impl Board {
    /// The board for a terminal, three columns to a cell: `@` the start, `[5]` cells on the path, `<5>` where
    /// it ends, `###` walls, `·` cells without points.
    ///
    /// # Errors
    /// When the path is not possible on this board.
    pub fn draw(&self, path: &[Direction]) -> Result<String, BlockedMove> {
        let trail = Trail::new(self, path)?;
        let mut drawing = String::new();
        for row in 0..self.height() {
            let cells = row * self.width()..(row + 1) * self.width();
            let line: String = cells.map(|cell| self.draw_cell(&trail, cell as Cell)).collect();
            drawing.push_str(line.trim_end());
            drawing.push('\n');
        }
        Ok(drawing)
    }

    fn draw_cell(&self, trail: &Trail, cell: Cell) -> String {
        let inner = match self.points(cell) {
            _ if cell == self.start() => '@',
            None => return "###".to_owned(),
            Some(0) => '·',
            Some(points) => char::from(b'0' + points),
        };
        match trail.visited[usize::from(cell)] && trail.cells.len() > 1 {
            true if cell == trail.end() => format!("<{inner}>"),
            true => format!("[{inner}]"),
            false => format!(" {inner} "),
        }
    }

    /// The board as an SVG picture: points shaded by worth, walls dark, the path a line from a ring at the
    /// start to a dot.
    ///
    /// # Errors
    /// When the path is not possible on this board.
    pub fn to_svg(&self, path: &[Direction]) -> Result<String, BlockedMove> {
        let trail = Trail::new(self, path)?;
        let (width, height) = (self.width() * SIDE, self.height() * SIDE);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" font-size=\"12\" text-anchor=\"middle\">\n"
        );
        for cell in 0..self.cells() as Cell {
            self.write_cell(&mut svg, cell);
        }
        self.write_trail(&mut svg, &trail);
        svg.push_str("</svg>\n");
        Ok(svg)
    }

    fn write_cell(&self, svg: &mut String, cell: Cell) {
        let place = self.place(cell);
        let (x, y) = (place.x * SIDE, place.y * SIDE);
        let fill = self.points(cell).map_or("#333333".to_owned(), |points| {
            let shade = 255 - 12 * u32::from(points);
            format!("#{shade:02x}{shade:02x}ff")
        });
        let square = format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"{fill}\" stroke=\"#cccccc\"/>"
        );
        let (middle_x, middle_y) = self.middle(cell);
        let label = self.points(cell).filter(|_| cell != self.start()).map_or(String::new(), |points| {
            format!("<text x=\"{middle_x}\" y=\"{}\">{points}</text>", middle_y + 4)
        });
        writeln!(svg, "{square}{label}").expect("a string takes whatever is written");
    }

    fn write_trail(&self, svg: &mut String, trail: &Trail) {
        let points: Vec<String> =
            trail.cells.iter().map(|&cell| self.middle(cell)).map(|(x, y)| format!("{x},{y}")).collect();
        let (x, y) = self.middle(self.start());
        let (end_x, end_y) = self.middle(trail.end());
        write!(
            svg,
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"8\" fill=\"none\" stroke=\"#d62728\" stroke-width=\"2\"/>\n\
             <polyline points=\"{}\" fill=\"none\" stroke=\"#d62728\" \
             stroke-width=\"3\" stroke-opacity=\"0.6\" stroke-linejoin=\"round\"/>\n\
             <circle cx=\"{end_x}\" cy=\"{end_y}\" r=\"5\" fill=\"#d62728\"/>\n",
            points.join(" ")
        )
        .expect("a string takes whatever is written");
    }

    fn middle(&self, cell: Cell) -> (usize, usize) {
        let place = self.place(cell);
        (place.x * SIDE + SIDE / 2, place.y * SIDE + SIDE / 2)
    }
}
