//! The picture: well-formed for every input, with all individuals in it.

use proptest::prelude::*;
use species::{Dbscan, Distances, Noise, Picture, Projection};

fn draw(points: &[Vec<f32>], title: &str, names: &[String], representatives: &[usize]) -> String {
    let distances = Distances::euclidean(points).expect("finite points of one dimension");
    let clustering = Dbscan { epsilon: 1.0, min_points: 3 }.cluster(&distances);
    let species = clustering.species(Noise::Drop, &distances);
    let projection = Projection::new(&distances);
    Picture { title, projection: &projection, species: &species, representatives, names }.to_svg()
}

/// Three of a kind here, three there, one alone.
fn seven() -> Vec<Vec<f32>> {
    [0.0, 1.0, 0.5, 20.0, 20.5, 21.0, 60.0].map(|place| vec![place, place / 3.0]).to_vec()
}

/// Every element is closed in turn, and no bare `&` or stray `<` is left.
fn is_well_formed(svg: &str) -> bool {
    let mut open: Vec<&str> = vec![];
    let mut rest = svg;
    while let Some(start) = rest.find('<') {
        let Some(length) = rest[start..].find('>') else { return false };
        let tag = &rest[start + 1..start + length];
        let word = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        if tag.contains('<') || word.is_empty() {
            return false;
        } else if tag.starts_with('/') {
            if open.pop() != Some(word) {
                return false;
            }
        } else if !tag.ends_with('/') {
            open.push(word);
        }
        rest = &rest[start + length + 1..];
    }
    let entities = ["amp;", "lt;", "gt;", "quot;"];
    let escaped = |(at, _)| entities.iter().any(|entity| svg[at + 1..].starts_with(entity));
    open.is_empty() && svg.match_indices('&').all(escaped)
}

#[test]
fn everybody_is_drawn_in_the_look_of_its_species() {
    let svg = draw(&seven(), "Seven", &[], &[1, 4]);
    assert!(is_well_formed(&svg), "{svg}");
    let group = |start: &str| {
        let from = svg.find(start).expect("a group");
        let to = svg[from..].find("</g>").expect("its end");
        svg[from..from + to].matches("<path").count()
    };
    assert_eq!(group("<g class=\"noise\">"), 1);
    assert_eq!(group("<g class=\"species\" fill=\"#0072b2\">"), 3);
    assert_eq!(group("<g class=\"species\" fill=\"#e69f00\">"), 3);
    assert_eq!(svg.matches("<circle class=\"ring\" cx").count(), 2);
    assert!(svg.contains("7 individuals, 2 species, 1 of no species"));
    assert!(svg.contains("2: 3, 4<"), "{svg}");
    assert!(svg.contains("prefers-color-scheme:dark"));
}

#[test]
fn many_species_leave_the_legend_readable() {
    let points: Vec<Vec<f32>> = (0..120_u16).map(|i| vec![f32::from(i / 3) * 50.0]).collect();
    let svg = draw(&points, "Forty", &[], &[]);
    assert!(svg.contains("40 species, 0 of no species") && svg.contains("and 23 more"), "{svg}");
}

#[test]
fn representatives_that_do_not_exist_are_not_drawn() {
    assert_eq!(draw(&seven(), "Seven", &[], &[1, 99]).matches("<circle class=\"ring\" cx").count(), 1);
}

#[test]
fn empty_and_single_populations_have_a_picture() {
    for points in [vec![], vec![vec![1.0]], vec![vec![2.0]; 5]] {
        let svg = draw(&points, "", &[], &[0]);
        assert!(is_well_formed(&svg) && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}

proptest! {
    #[test]
    fn any_text_keeps_it_well_formed(title: String, name: String) {
        let names = vec![name; 7];
        prop_assert!(is_well_formed(&draw(&seven(), &title, &names, &[0, 3])));
    }

    #[test]
    fn every_marker_is_inside(
        points in prop::collection::vec(prop::collection::vec(-1e6_f32..1e6, 4), 1..20),
    ) {
        let svg = draw(&points, "anywhere", &[], &[]);
        for place in svg.split("translate(").skip(1).filter_map(|text| text.split(')').next()) {
            let numbers: Vec<f64> = place.split(' ').map(|text| text.parse().expect("a number")).collect();
            prop_assert!((0.0..940.0).contains(&numbers[0]) && (0.0..660.0).contains(&numbers[1]), "{}", place);
        }
    }
}
