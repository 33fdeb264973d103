use std::io::Write;
fn cpu() -> f64 {
    let s = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    s.split_whitespace().next().unwrap().parse::<f64>().unwrap() * 1e-9
}
fn main() {
    // args: per-N generations, islands, population, interval, extra algorithm keys, operators keys, repeats, board seeds a..b, sizes, min turns
    let a: Vec<String> = std::env::args().collect();
    let gens: f64 = a[1].parse().unwrap();
    let islands = &a[2];
    let pop = &a[3];
    let interval = &a[4];
    let alg = &a[5];
    let ops = &a[6];
    let repeats: u64 = a[7].parse().unwrap();
    let (s0, s1): (u32, u32) = (a[8].parse().unwrap(), a[9].parse().unwrap());
    let minturns: usize = a[10].parse().unwrap();
    let stop: bool = a[11] == "stop";
    let known: Vec<(usize, usize, u32)> = include_str!("../../maze/tests/data/maze_seed0_boards.csv")
        .lines()
        .filter(|l| l.starts_with(|c: char| c.is_ascii_digit()))
        .map(|l| {
            let v: Vec<u32> = l.split(',').map(|x| x.parse().unwrap()).collect();
            (v[0] as usize, v[1] as usize, v[5])
        })
        .collect();
    let mut cache: std::collections::BTreeMap<(u32, usize, usize), u32> = Default::default();
    if let Ok(t) = std::fs::read_to_string("/tmp/maze-optima.txt") {
        for l in t.lines() {
            let v: Vec<u32> = l.split(' ').map(|x| x.parse().unwrap()).collect();
            cache.insert((v[0], v[1] as usize, v[2] as usize), v[3]);
        }
    }
    let (mut all, mut hit, mut worst, mut total) = (0, 0, 0.0f64, 0.0);
    for seed in s0..s1 {
        for &(side, turns, low) in &known {
            if turns < minturns {
                continue;
            }
            let optimum = if seed == 0 {
                low
            } else {
                *cache.entry((seed, side, turns)).or_insert_with(|| {
                    let b = maze::Board::generate(side, side, seed).unwrap();
                    let s = maze::Exact { max_states: 3_000_000, ..Default::default() }
                        .solve(&b, maze::Turns::new(turns).unwrap())
                        .unwrap();
                    let v = if s.is_proved() { s.score } else { 0 };
                    let mut f = std::fs::OpenOptions::new()
                        .create(true)
                        .append(true)
                        .open("/tmp/maze-optima.txt")
                        .unwrap();
                    writeln!(f, "{seed} {side} {turns} {v}").unwrap();
                    v
                })
            };
            if optimum == 0 {
                continue;
            }
            let (mut ok, mut slow, mut sum, mut first) = (0, 0.0f64, 0.0, vec![]);
            for r in 0..repeats {
                let target = if stop { format!(", target_fitness = {optimum}") } else { String::new() };
                let text = format!(
                    "name = \"x\"\nislands = {{ count = {islands} }}\nmigration = {{ interval = {interval}, count = 1 }}\nbudget = {{ generations = {}{target} }}\nproblem = {{ kind = \"maze\", width = {side}, height = {side}, board_seed = {seed}, turns = {turns}, founders = {{ kind = \"greedy\", share = 0.5, random_ties = true }}, operators = {{ kind = \"path\"{ops} }} }}\nalgorithm = {{ kind = \"crowding\", population = {pop}{alg} }}\n",
                    (gens * turns as f64) as u64
                );
                let experiment::Plan::Single(e) = experiment::parse("x", &text, Some(r)).unwrap() else {
                    panic!()
                };
                let t = cpu();
                let o = archipelago::solo::evolve(&e, || false).unwrap().unwrap();
                let t = (cpu() - t) / (turns * turns) as f64 * 1e3;
                let best = o.islands.iter().map(|(_, s)| s.best).fold(0.0, f64::max);
                if best >= f64::from(optimum) {
                    ok += 1
                } else {
                    first.push(best)
                }
                slow = slow.max(t);
                sum += t;
            }
            all += repeats;
            hit += ok;
            worst = worst.max(slow);
            total += sum;
            if ok < repeats || a.len() > 12 {
                println!(
                    "seed {seed} {side}x{side} N {turns}: {ok}/{repeats} optimum {optimum} missed {first:?}, mean {:.3} max {slow:.3} ms/N2",
                    sum / repeats as f64
                );
            }
        }
    }
    println!("ALL {hit}/{all}, mean {:.3}, worst {worst:.3} ms x N2", total / all as f64);
}
