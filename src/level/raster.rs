//! Pictures of levels as PNG: the few SVG elements that they are made of, drawn as pixels.
//!
//! It is no SVG renderer: it knows rectangles, circles, lines and short labels, as the games' own pictures use them.

use std::io;

/// A picture in pixels.
pub(crate) struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<[u8; 3]>,
}

/// Draws one of our own SVG pictures, each of its pixels as a square of `scale` pixels, and writes it as PNG.
pub(crate) fn to_png(svg: &str, scale: usize) -> Result<Vec<u8>, io::Error> {
    let mut elements = svg.split('<').filter_map(Element::parse);
    let root = elements.find(|element| element.name == "svg");
    let side = |name| root.as_ref().map_or(1.0, |root| root.number(name)).clamp(1.0, 4096.0);
    let mut canvas = Canvas::new(side("width") as usize * scale, side("height") as usize * scale);
    elements.for_each(|element| element.draw(&mut canvas, scale as f64));
    canvas.png()
}

/// An element with its attributes and the text behind it.
struct Element<'a> {
    name: &'a str,
    attributes: &'a str,
    text: &'a str,
}

impl<'a> Element<'a> {
    fn parse(source: &'a str) -> Option<Self> {
        let (head, text) = source.split_once('>')?;
        let (name, attributes) = head.split_once(' ')?;
        Some(Self { name, attributes, text: text.trim_end() })
    }

    fn attribute(&self, name: &str) -> Option<&'a str> {
        let found = self.attributes.match_indices(name).find(|&(at, _)| {
            let before = self.attributes[..at].chars().next_back();
            before.is_none_or(char::is_whitespace) && self.attributes[at + name.len()..].starts_with("=\"")
        });
        let value = &self.attributes[found?.0 + name.len() + 2..];
        value.split('"').next()
    }

    fn number(&self, name: &str) -> f64 {
        self.attribute(name).and_then(|value| value.parse().ok()).unwrap_or(0.0)
    }

    fn colour(&self, name: &str) -> Option<[u8; 3]> {
        let digits = self.attribute(name)?.strip_prefix('#')?;
        let part = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        Some([part(0)?, part(2)?, part(4)?])
    }

    fn stroke_width(&self) -> f64 {
        if self.attribute("stroke-width").is_some() { self.number("stroke-width") } else { 1.0 }
    }

    fn draw(&self, canvas: &mut Canvas, scale: f64) {
        let number = |name| self.number(name) * scale;
        let half = self.stroke_width() * scale / 2.0;
        let (fill, stroke) = (self.colour("fill"), self.colour("stroke"));
        match self.name {
            "rect" => {
                let [x, y] = [number("x"), number("y")];
                let corners = [x, y, x + number("width"), y + number("height")];
                paint(stroke, |ink| canvas.rectangle(grown(corners, half), ink));
                let inner = if stroke.is_some() { grown(corners, -half) } else { corners };
                // What has no fill shows what is under it, which in our pictures is white.
                let fill = fill.or(stroke.map(|_| [255; 3]));
                paint(fill, |ink| canvas.rectangle(inner, ink));
            }
            "circle" => {
                let (centre, radius) = ([number("cx"), number("cy")], number("r"));
                paint(stroke, |ink| canvas.disc(centre, radius + half, ink));
                let inner = if stroke.is_some() { radius - half } else { radius };
                paint(fill, |ink| canvas.disc(centre, inner, ink));
            }
            "path" | "polyline" => {
                let data = self.attribute("d").or(self.attribute("points")).unwrap_or("");
                let ink = stroke.unwrap_or([0; 3]);
                for [from, to] in lines(data) {
                    canvas.line(from.map(|at| at * scale), to.map(|at| at * scale), half, ink);
                }
            }
            "text" => {
                let ink = if stroke.is_some() { [0; 3] } else { fill.unwrap_or([0; 3]) };
                let at = [number("x"), number("y")];
                canvas.label(self.text, at, scale, ink);
            }
            _ => {}
        }
    }
}

fn paint(ink: Option<[u8; 3]>, draw: impl FnOnce([u8; 3])) {
    if let Some(ink) = ink {
        draw(ink);
    }
}

fn grown([left, top, right, bottom]: [f64; 4], by: f64) -> [f64; 4] {
    [left - by, top - by, right + by, bottom + by]
}

/// The straight lines of a path of `M`, `L` and `V`, or of a list of points.
fn lines(data: &str) -> Vec<[[f64; 2]; 2]> {
    let mut lines = vec![];
    let mut here = None;
    let mut rest = data;
    while !rest.is_empty() {
        let command = rest.chars().next().filter(char::is_ascii_alphabetic);
        let body = &rest[command.map_or(0, char::len_utf8)..];
        let end = body.find(|mark: char| mark.is_ascii_alphabetic()).unwrap_or(body.len());
        let numbers: Vec<f64> =
            body[..end].split([' ', ',']).filter_map(|number| number.parse().ok()).collect();
        if command == Some('M') {
            here = None;
        }
        let points = if command == Some('V') {
            here.map(|[x, _]: [f64; 2]| [x, numbers.first().copied().unwrap_or(0.0)]).into_iter().collect()
        } else {
            numbers.as_chunks::<2>().0.to_vec()
        };
        for point in points {
            lines.extend(here.map(|from| [from, point]));
            here = Some(point);
        }
        rest = &body[end..];
    }
    lines
}

/// Rows of three pixels, five of them, for digits and letters; letters look alike in either case.
const GLYPHS: [u16; 36] = [
    0o75557, 0o26227, 0o71747, 0o71717, 0o55711, 0o74717, 0o74757, 0o71111, 0o75757, 0o75717, // digits
    0o25755, 0o65656, 0o34443, 0o65556, 0o74647, 0o74644, 0o34553, 0o55755, 0o72227, 0o11152, 0o55655,
    0o44447, 0o57755, 0o65555, 0o25552, 0o65644, 0o25563, 0o65655, 0o34216, 0o72222, 0o55557, 0o55552,
    0o55775, 0o55255, 0o55222, 0o71247,
];

impl Canvas {
    fn new(width: usize, height: usize) -> Self {
        Self { width, height, pixels: vec![[255; 3]; width * height] }
    }

    /// Colours the pixels of a box whose centres satisfy a condition.
    fn fill(
        &mut self,
        [left, top, right, bottom]: [f64; 4],
        ink: [u8; 3],
        is_inside: impl Fn(f64, f64) -> bool,
    ) {
        let clamp = |at: f64, most: usize| at.clamp(0.0, most as f64) as usize;
        for y in clamp(top, self.height)..clamp(bottom.ceil(), self.height) {
            for x in clamp(left, self.width)..clamp(right.ceil(), self.width) {
                if is_inside(x as f64 + 0.5, y as f64 + 0.5) {
                    self.pixels[y * self.width + x] = ink;
                }
            }
        }
    }

    fn rectangle(&mut self, corners: [f64; 4], ink: [u8; 3]) {
        let [left, top, right, bottom] = corners;
        self.fill(corners, ink, |x, y| x >= left && x <= right && y >= top && y <= bottom);
    }

    fn disc(&mut self, [cx, cy]: [f64; 2], radius: f64, ink: [u8; 3]) {
        let corners = [cx - radius, cy - radius, cx + radius, cy + radius];
        self.fill(corners, ink, |x, y| (x - cx) * (x - cx) + (y - cy) * (y - cy) <= radius * radius);
    }

    /// A straight line so wide to either side.
    fn line(&mut self, from: [f64; 2], to: [f64; 2], half: f64, ink: [u8; 3]) {
        let along = [to[0] - from[0], to[1] - from[1]];
        let length = along[0] * along[0] + along[1] * along[1];
        let corners =
            grown([from[0].min(to[0]), from[1].min(to[1]), from[0].max(to[0]), from[1].max(to[1])], half);
        self.fill(corners, ink, |x, y| {
            let part = ((x - from[0]) * along[0] + (y - from[1]) * along[1]) / length.max(1e-9);
            let part = part.clamp(0.0, 1.0);
            let [dx, dy] = [x - from[0] - part * along[0], y - from[1] - part * along[1]];
            dx * dx + dy * dy <= half * half
        });
    }

    /// A label that stands on a line and is centred on a place.
    fn label(&mut self, text: &str, [x, y]: [f64; 2], scale: f64, ink: [u8; 3]) {
        let dot = 2.0 * scale;
        let width = (4 * text.chars().count()) as f64 * dot - dot;
        for (index, character) in text.chars().enumerate() {
            let Some(number) = character.to_digit(36) else { continue };
            let left = x - width / 2.0 + (4 * index) as f64 * dot;
            for bit in (0..15).filter(|bit| GLYPHS[number as usize] >> (14 - bit) & 1 == 1) {
                let [column, row] = [f64::from(bit % 3), f64::from(bit / 3)];
                let corner = [left + column * dot, y - (5.0 - row) * dot];
                self.rectangle([corner[0], corner[1], corner[0] + dot, corner[1] + dot], ink);
            }
        }
    }

    fn png(&self) -> Result<Vec<u8>, io::Error> {
        let mut bytes = vec![];
        let mut encoder = png::Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(self.pixels.as_flattened())?;
        writer.finish()?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(svg: &str) -> Canvas {
        let bytes = to_png(svg, 1).unwrap();
        let mut reader = png::Decoder::new(io::Cursor::new(bytes)).read_info().unwrap();
        let mut buffer = vec![0; reader.output_buffer_size().unwrap()];
        let frame = reader.next_frame(&mut buffer).unwrap();
        let pixels = buffer.as_chunks::<3>().0.to_vec();
        Canvas { width: frame.width as usize, height: frame.height as usize, pixels }
    }

    fn at(canvas: &Canvas, x: usize, y: usize) -> [u8; 3] {
        canvas.pixels[y * canvas.width + x]
    }

    #[test]
    fn shapes_are_where_they_belong() {
        let canvas = drawn(
            "<svg width=\"20\" height=\"10\">\n<rect x=\"1\" y=\"1\" width=\"3\" height=\"3\" fill=\"#ff0000\"/>\n\
             <circle cx=\"10\" cy=\"5\" r=\"2\" fill=\"#00ff00\"/>\n\
             <path d=\"M15 2L15 8M17 2V8\" stroke=\"#0000ff\" stroke-width=\"2\"/>\n</svg>\n",
        );
        assert_eq!((canvas.width, canvas.height), (20, 10));
        assert_eq!((at(&canvas, 2, 2), at(&canvas, 4, 2)), ([255, 0, 0], [255; 3]));
        assert_eq!((at(&canvas, 10, 5), at(&canvas, 12, 7)), ([0, 255, 0], [255; 3]));
        assert_eq!(
            (at(&canvas, 14, 5), at(&canvas, 17, 5), at(&canvas, 19, 5)),
            ([0, 0, 255], [0, 0, 255], [255; 3])
        );
    }

    #[test]
    fn a_level_has_the_size_of_its_picture() {
        let level: lockkey::Level = "#######\n#<.A.>#\n#.#####\n#....a#\n#######\n".parse().unwrap();
        let canvas = drawn(&level.to_svg(None));
        assert_eq!((canvas.width, canvas.height), (112, 80));
        // The lock's fill, beside its letter.
        assert_eq!(at(&canvas, 48, 15), [0, 0x72, 0xb2]);
    }
}
