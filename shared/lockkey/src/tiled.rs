//! Levels as maps for the Tiled editor, in its JSON form.

use crate::difficulty::Method;
use crate::grid::Cell;
use crate::level::Level;
use serde_json::{Value, json};

/// Pixels of a tile.
const TILE: usize = 16;

/// The picture that the tileset names; [`tile_sheet`] draws it.
pub const TILE_SHEET: &str = "lock-key-tiles.svg";

/// Tiles of the sheet, by their number in the map.
mod tile {
    pub(super) const FLOOR: u32 = 1;
    pub(super) const WALL: u32 = 2;
    pub(super) const ENTRY: u32 = 3;
    pub(super) const EXIT: u32 = 4;
    pub(super) const KEY: u32 = 5;
    pub(super) const LOCK: u32 = 6;
    pub(super) const COUNT: usize = 6;
}

/// The sheet of tiles that exported maps refer to, to be saved beside them under the name [`TILE_SHEET`].
pub fn tile_sheet() -> String {
    let width = TILE * tile::COUNT;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{TILE}\">\n\
         <rect width=\"{width}\" height=\"{TILE}\" fill=\"#f5f0e6\"/>\n\
         <rect x=\"16\" width=\"16\" height=\"16\" fill=\"#333333\"/>\n\
         <path d=\"M36 12L44 8L36 4Z\" fill=\"#009e73\"/>\n\
         <rect x=\"52\" y=\"4\" width=\"8\" height=\"8\" fill=\"#d55e00\"/>\n\
         <path d=\"M68 8a3 3 0 1 0 6 0a3 3 0 1 0 -6 0M74 8h4v3\" fill=\"none\" stroke=\"#b8860b\" stroke-width=\"2\"/>\n\
         <path d=\"M83 8h10v6h-10ZM85 8v-3a3 3 0 0 1 6 0v3\" fill=\"none\" stroke=\"#0072b2\" stroke-width=\"2\"/>\n\
         </svg>\n"
    )
}

impl Level {
    /// The level as a Tiled map: walls and floor as tiles; entry, exit, keys, locks and the way through as objects.
    pub fn to_tiled(&self) -> Value {
        let rows = self.rows();
        let (width, height) = (rows[0].len(), rows.len());
        let tiles: Vec<u32> = rows.concat().chars().map(tile_of).collect();
        let parts = self.part_objects();
        let ways = self.way_objects(parts.len() + 1);
        let next_object = parts.len() + ways.len() + 1;
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
            "nextlayerid": 4,
            "nextobjectid": next_object,
            "tilesets": [tileset()],
            "layers": [
                {
                    "type": "tilelayer", "id": 1, "name": "maze", "visible": true, "opacity": 1,
                    "x": 0, "y": 0, "width": width, "height": height, "data": tiles,
                },
                object_layer(2, "parts", true, &parts),
                object_layer(3, "solution", false, &ways),
            ],
        })
    }

    fn part_objects(&self) -> Vec<Value> {
        let ends = [("entry", tile::ENTRY, self.entry), ("exit", tile::EXIT, self.exit)];
        let ends = ends.into_iter().map(|(kind, tile, cell)| (kind, tile, cell, None));
        let keys = self.keys.iter().map(|key| ("key", tile::KEY, key.cell, Some(key.colour)));
        let locks = self.locks.iter().map(|lock| ("lock", tile::LOCK, lock.cell, Some(lock.colour)));
        let parts = ends.chain(keys).chain(locks).enumerate();
        parts
            .map(|(index, (kind, tile, cell, colour))| {
                let (x, y) = centre(cell);
                let mut object = json!({
                    "id": index + 1, "type": kind, "gid": tile, "visible": true, "rotation": 0,
                    "width": TILE, "height": TILE,
                    // A tile object stands on its lower left corner.
                    "x": x - TILE / 2, "y": y + TILE / 2,
                    "name": colour.map_or_else(|| kind.to_owned(), |colour| format!("{kind} {colour}")),
                });
                if let Some(colour) = colour {
                    object["properties"] =
                        json!([{ "name": "colour", "type": "string", "value": colour.to_string() }]);
                }
                object
            })
            .collect()
    }

    fn way_objects(&self, first_id: usize) -> Vec<Value> {
        let legs = self.survey(Method::Plain).map_or_else(|_| vec![], |survey| survey.legs);
        let object = |(index, leg): (usize, &crate::difficulty::Leg)| {
            let (x0, y0) = centre(leg.from);
            let point = |&cell: &Cell| {
                let (x, y) = centre(cell);
                json!({ "x": x as i64 - x0 as i64, "y": y as i64 - y0 as i64 })
            };
            json!({
                "id": first_id + index, "name": format!("leg {}", index + 1), "type": "leg",
                "visible": true, "rotation": 0, "width": 0, "height": 0, "x": x0, "y": y0,
                "polyline": leg.path.iter().map(point).collect::<Vec<_>>(),
            })
        };
        legs.iter().enumerate().map(object).collect()
    }
}

fn tile_of(character: char) -> u32 {
    if character == '#' { tile::WALL } else { tile::FLOOR }
}

fn centre(cell: Cell) -> (usize, usize) {
    let middle = |place: u8| (2 * usize::from(place) + 1) * TILE + TILE / 2;
    (middle(cell.x()), middle(cell.y()))
}

fn tileset() -> Value {
    json!({
        "firstgid": 1, "name": "lock-key", "image": TILE_SHEET,
        "imagewidth": TILE * tile::COUNT, "imageheight": TILE,
        "tilewidth": TILE, "tileheight": TILE, "tilecount": tile::COUNT, "columns": tile::COUNT,
        "margin": 0, "spacing": 0,
    })
}

fn object_layer(id: u32, name: &str, visible: bool, objects: &[Value]) -> Value {
    json!({
        "type": "objectgroup", "id": id, "name": name, "visible": visible, "opacity": 1,
        "draworder": "topdown", "x": 0, "y": 0, "objects": objects,
    })
}

#[cfg(test)]
mod tests {
    use crate::level::Level;

    #[test]
    fn a_map_has_every_tile_and_every_part() {
        let level: Level = "#######\n#<.A.>#\n#.#####\n#....a#\n#######\n".parse().unwrap();
        let map = level.to_tiled();
        let tiles = map["layers"][0]["data"].as_array().unwrap();
        assert_eq!((tiles.len(), &map["width"], &map["height"]), (35, &7.into(), &5.into()));
        assert_eq!(tiles.iter().filter(|tile| **tile == 1).count(), 6 + 5);
        let parts = map["layers"][1]["objects"].as_array().unwrap();
        let names: Vec<&str> = parts.iter().map(|part| part["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["entry", "exit", "key a", "lock a"]);
        // The key: third column, second row of cells, so the sixth tile from the left and the fourth from the top.
        assert_eq!((&parts[2]["x"], &parts[2]["y"]), (&(5 * 16).into(), &(4 * 16).into()));
        let ways = map["layers"][2]["objects"].as_array().unwrap();
        assert_eq!(ways.len(), 2);
        assert_eq!(map["nextobjectid"], 7);
    }
}
