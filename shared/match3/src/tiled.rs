//! Boards as maps for the Tiled editor, in its JSON form.

use crate::file::Level;
use crate::svg::PALETTE;
use serde_json::{Value, json};
use std::fmt::Write;

/// Pixels of a tile.
const TILE: usize = 16;

/// The picture that the tileset names; [`tile_sheet`] draws it.
pub const TILE_SHEET: &str = "match3-tiles.svg";

/// The sheet of tiles that exported maps refer to, to be saved beside them under the name [`TILE_SHEET`].
pub fn tile_sheet() -> String {
    let width = TILE * PALETTE.len();
    let mut svg = format!("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{TILE}\">\n");
    for (index, fill) in PALETTE.iter().enumerate() {
        let x = index * TILE;
        // Writing into a string cannot fail.
        let _ =
            writeln!(svg, "<rect x=\"{x}\" width=\"{TILE}\" height=\"{TILE}\" rx=\"3\" fill=\"{fill}\"/>");
    }
    svg + "</svg>\n"
}

impl Level {
    /// The level as a Tiled map: its blocks as tiles, what is to be reached as properties.
    pub fn to_tiled(&self) -> Value {
        let (width, height) = (self.board.width(), self.board.height());
        json!({
            "type": "map",
            "version": "1.10",
            "tiledversion": "1.10.2",
            "orientation": "orthogonal",
            "renderorder": "right-down",
            "infinite": false,
            "compressionlevel": -1,
            "width": width,
            "height": height,
            "tilewidth": TILE,
            "tileheight": TILE,
            "nextlayerid": 2,
            "nextobjectid": 1,
            "properties": [
                { "name": "moves", "type": "int", "value": self.rules.moves },
                { "name": "pass", "type": "float", "value": self.rules.pass },
            ],
            "tilesets": [{
                "firstgid": 1, "name": "match3", "image": TILE_SHEET,
                "imagewidth": TILE * PALETTE.len(), "imageheight": TILE,
                "tilewidth": TILE, "tileheight": TILE,
                "tilecount": PALETTE.len(), "columns": PALETTE.len(),
                "margin": 0, "spacing": 0,
            }],
            "layers": [{
                "type": "tilelayer", "id": 1, "name": "board", "visible": true, "opacity": 1,
                "x": 0, "y": 0, "width": width, "height": height, "data": self.board.cells(),
            }],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_tiles_and_gaps_are_none() {
        let level = Level::of_board("..3\n121\n".parse().unwrap()).unwrap();
        let map = level.to_tiled();
        assert_eq!(map["layers"][0]["data"], json!([0, 0, 3, 1, 2, 1]));
        assert_eq!((&map["width"], &map["height"]), (&json!(3), &json!(2)));
        assert_eq!(tile_sheet().matches("<rect").count(), 7);
    }
}
