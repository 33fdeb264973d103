//! Islands on a circle, with what flows between them.

use super::canvas::{Anchor, Canvas, Entry, Mark, Picture, legend_height};

/// Islands and the ways between them.
#[derive(Clone, Debug)]
pub struct Network<'a> {
    /// The name of its file.
    pub name: &'a str,
    /// What it shows.
    pub title: &'a str,
    /// What one sees, in words.
    pub description: &'a str,
    /// How many islands there are.
    pub islands: u32,
    /// The ways between them.
    pub flows: Vec<Flow>,
}

/// What went from one island to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Who sent.
    pub from: u32,
    /// Who received.
    pub to: u32,
    /// The migrants that arrived.
    pub offered: u64,
    /// Those that found a place.
    pub accepted: u64,
    /// Those that were better than the best of the island.
    pub better: u64,
}

impl Flow {
    /// How it is drawn: a class of the style sheet.
    fn class(&self) -> &'static str {
        match self {
            Self { accepted: 0, .. } => "idle dashed",
            Self { better: 0, .. } => "k0",
            _ => "k1",
        }
    }

    fn head_class(&self) -> &'static str {
        match self {
            Self { accepted: 0, .. } => "f7",
            Self { better: 0, .. } => "f0",
            _ => "f1",
        }
    }
}

const WIDTH: f64 = 860.0;

impl Network<'_> {
    /// The picture.
    pub fn draw(&self) -> Picture {
        let entries = [
            Entry { mark: Mark::Line("curve k1"), label: "a migrant beat the best of its new island" },
            Entry { mark: Mark::Line("curve k0"), label: "found places, never the best" },
            Entry { mark: Mark::Line("curve idle dashed"), label: "no migrant accepted" },
        ];
        let legend = legend_height(&entries, WIDTH - 20.0);
        let size = if self.islands <= 4 { 240.0 } else { 460.0 };
        let mut canvas = Canvas::new(WIDTH, legend + size);
        canvas.legend(&entries, 10.0, 0.0, WIDTH - 20.0);
        let most = self.flows.iter().map(|flow| flow.accepted).max().unwrap_or(0).max(1);
        for flow in &self.flows {
            self.draw_flow(&mut canvas, flow, most, (legend, size));
        }
        for island in 0..self.islands {
            let (x, y) = self.place(island, (legend, size));
            canvas.circle("node", x, y, self.radius());
            canvas.text("", x, y + 4.0, Anchor::Middle, &island.to_string());
        }
        canvas.finish(self.name, self.title, self.description)
    }

    fn radius(&self) -> f64 {
        if self.islands <= 24 { 15.0 } else { 10.5 }
    }

    fn place(&self, island: u32, (top, size): (f64, f64)) -> (f64, f64) {
        let angle = std::f64::consts::TAU * f64::from(island) / f64::from(self.islands.max(1));
        let reach = size / 2.0 - 24.0;
        let reach = if self.islands == 1 { 0.0 } else { reach };
        let (sine, cosine) = sine_cosine(angle);
        (WIDTH / 2.0 + reach * 1.5 * sine, top + size / 2.0 - reach * cosine)
    }

    /// A bow to the left of the way, so that ways there and back do not cover each other, with a head at its end.
    fn draw_flow(&self, canvas: &mut Canvas, flow: &Flow, most: u64, room: (f64, f64)) {
        let ((ax, ay), (bx, by)) = (self.place(flow.from, room), self.place(flow.to, room));
        let (dx, dy) = (bx - ax, by - ay);
        let length = (dx * dx + dy * dy).sqrt().max(1.0);
        let bend = (length * 0.12).min(40.0);
        let (cx, cy) =
            (f64::midpoint(ax, bx) + dy / length * bend, f64::midpoint(ay, by) - dx / length * bend);
        let (ux, uy) = unit(bx - cx, by - cy);
        let rim = self.radius() + 1.0;
        let (ex, ey) = (bx - ux * rim, by - uy * rim);
        let width = 1.0 + 3.5 * flow.accepted as f64 / most as f64;
        let head = 5.0 + width;
        let (tx, ty) = (ex - ux * head, ey - uy * head);
        canvas.stroke(flow.class(), width, &format!("M{ax:.1} {ay:.1}Q{cx:.1} {cy:.1} {tx:.1} {ty:.1}"));
        let side = head * 0.5;
        canvas.path(
            flow.head_class(),
            &format!(
                "M{ex:.1} {ey:.1}L{:.1} {:.1}L{:.1} {:.1}z",
                tx - uy * side,
                ty + ux * side,
                tx + uy * side,
                ty - ux * side
            ),
        );
    }
}

fn unit(x: f64, y: f64) -> (f64, f64) {
    let length = (x * x + y * y).sqrt().max(1e-9);
    (x / length, y / length)
}

/// Sine and cosine of an angle from 0 to a whole turn, by series: the same to the last bit on every machine.
fn sine_cosine(angle: f64) -> (f64, f64) {
    let angle = if angle > std::f64::consts::PI { angle - std::f64::consts::TAU } else { angle };
    let (mut sine, mut cosine, mut term) = (0.0, 0.0, 1.0);
    for power in 1..32 {
        match power % 4 {
            1 => cosine += term,
            2 => sine += term,
            3 => cosine -= term,
            _ => sine -= term,
        }
        term *= angle / f64::from(power);
    }
    (sine, cosine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sine_and_cosine_are_right() {
        for step in 0..=100 {
            let angle = std::f64::consts::TAU * f64::from(step) / 100.0;
            let (sine, cosine) = sine_cosine(angle);
            assert!((sine - angle.sin()).abs() < 1e-9 && (cosine - angle.cos()).abs() < 1e-9, "{angle}");
        }
    }
}
