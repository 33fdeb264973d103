//! Memory that does not grow with time.

use crate::support::{Place, pause};

const MIB: u64 = 1 << 20;

/// The peak memory of a run of this number of generations, in bytes.
fn peak_of(generations: u64) -> u64 {
    let place = Place::new();
    place.write(
        "long.toml",
        format!(
            r#"
            name = "long"
            problem = {{ kind = "maze", turns = 20 }}
            algorithm = {{ kind = "ga", population = 200 }}
            islands = {{ count = 4 }}
            migration = {{ interval = 5 }}
            budget = {{ generations = {generations} }}
            "#
        ),
    );
    let mut run = place.start(&["run", "long.toml", "--json", "--threads", "2"]);
    let status = format!("/proc/{}/status", run.id());
    let mut peak = 0;
    while run.is_running() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        peak = peak.max(kibibytes.unwrap_or(0) << 10);
        pause();
    }
    run.finish().expect(0);
    peak
}

#[test]
fn memory_is_constant_over_ten_thousand_generations() {
    let (short, long) = (peak_of(2_000), peak_of(10_000));
    println!("{} MiB after 2,000 generations, {} MiB after 10,000", short / MIB, long / MIB);
    assert!(short > MIB, "it was seen at all");
    assert!(long < short + 4 * MIB, "{short} bytes, then {long}");
}
