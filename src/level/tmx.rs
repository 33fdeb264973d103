//! Maps for the Tiled editor in its XML form, written from those in its JSON form.

use serde_json::Value;
use std::fmt::Write;

/// A JSON map as TMX.
pub(super) fn of_map(map: &Value) -> String {
    let mut xml = Xml { text: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned(), depth: 0 };
    let keys = [
        "version",
        "tiledversion",
        "orientation",
        "renderorder",
        "width",
        "height",
        "tilewidth",
        "tileheight",
        "nextlayerid",
        "nextobjectid",
    ];
    let mut attributes = of_keys(map, &keys);
    attributes.push(("infinite", "0".to_owned()));
    xml.element("map", &attributes, |xml| {
        properties(xml, map);
        for tileset in list(map, "tilesets") {
            let keys = ["firstgid", "name", "tilewidth", "tileheight", "tilecount", "columns"];
            xml.element("tileset", &of_keys(tileset, &keys), |xml| {
                let image = [
                    ("source", text(&tileset["image"])),
                    ("width", text(&tileset["imagewidth"])),
                    ("height", text(&tileset["imageheight"])),
                ];
                xml.element("image", &image, |_| ());
            });
        }
        list(map, "layers").for_each(|layer| one_layer(xml, layer));
    });
    xml.text
}

fn one_layer(xml: &mut Xml, layer: &Value) {
    let mut attributes = of_keys(layer, &["id", "name"]);
    if layer["visible"] == false {
        attributes.push(("visible", "0".to_owned()));
    }
    if layer["type"] == "objectgroup" {
        return xml.element("objectgroup", &attributes, |xml| {
            list(layer, "objects").for_each(|object| one_object(xml, object));
        });
    }
    attributes.extend(of_keys(layer, &["width", "height"]));
    xml.element("layer", &attributes, |xml| {
        let width = layer["width"].as_u64().unwrap_or(1).max(1) as usize;
        let tiles: Vec<String> = list(layer, "data").map(text).collect();
        let rows: Vec<String> = tiles.chunks(width).map(|row| row.join(",")).collect();
        xml.content("data", &[("encoding", "csv".to_owned())], &format!("\n{}\n", rows.join(",\n")));
    });
}

fn one_object(xml: &mut Xml, object: &Value) {
    let mut keys = vec!["id", "name", "type"];
    if object["gid"].is_number() {
        keys.extend(["gid", "x", "y", "width", "height"]);
    } else {
        keys.extend(["x", "y"]);
    }
    xml.element("object", &of_keys(object, &keys), |xml| {
        properties(xml, object);
        if object["polyline"].is_array() {
            let point = |point: &Value| format!("{},{}", text(&point["x"]), text(&point["y"]));
            let points: Vec<String> = list(object, "polyline").map(point).collect();
            xml.element("polyline", &[("points", points.join(" "))], |_| ());
        }
    });
}

fn properties(xml: &mut Xml, owner: &Value) {
    if list(owner, "properties").next().is_none() {
        return;
    }
    xml.element("properties", &[], |xml| {
        for property in list(owner, "properties") {
            let keys = if property["type"] == "string" {
                &["name", "value"][..]
            } else {
                &["name", "type", "value"]
            };
            xml.element("property", &of_keys(property, keys), |_| ());
        }
    });
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value[key].as_array().into_iter().flatten()
}

fn of_keys<'k>(value: &Value, keys: &[&'k str]) -> Vec<(&'k str, String)> {
    keys.iter().map(|&key| (key, text(&value[key]))).collect()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

struct Xml {
    text: String,
    depth: usize,
}

impl Xml {
    fn element(&mut self, name: &str, attributes: &[(&str, String)], inside: impl FnOnce(&mut Self)) {
        self.open(name, attributes);
        let before = self.text.len();
        self.text.push_str(">\n");
        self.depth += 1;
        inside(self);
        self.depth -= 1;
        if self.text.len() == before + 2 {
            self.text.truncate(before);
            self.text.push_str("/>\n");
        } else {
            self.line(&format!("</{name}>"));
        }
    }

    fn content(&mut self, name: &str, attributes: &[(&str, String)], content: &str) {
        self.open(name, attributes);
        // Writing into a string cannot fail.
        let _ = writeln!(self.text, ">{}</{name}>", escaped(content));
    }

    fn open(&mut self, name: &str, attributes: &[(&str, String)]) {
        self.text.push_str(&" ".repeat(self.depth));
        let _ = write!(self.text, "<{name}");
        for (key, value) in attributes {
            let _ = write!(self.text, " {key}=\"{}\"", escaped(value));
        }
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{}{line}", " ".repeat(self.depth));
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
