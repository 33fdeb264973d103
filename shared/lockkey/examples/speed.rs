use lockkey::*;
fn cpu() -> f64 {
    let s = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    s.split(' ').next().unwrap().parse::<f64>().unwrap() * 1e-9
}
fn median(mut v: Vec<u32>) -> u32 {
    v.sort_unstable();
    v[v.len() / 2]
}
fn main() {
    let mut rater = Rater::default();
    for maze in [Maze::DepthFirst, Maze::Prim] {
        for (n, pairs) in [(6, 2), (8, 2), (10, 2), (10, 3), (10, 4)] {
            let mut b =
                Builder::new(Blueprint { width: n, height: n, pairs, maze, ..Blueprint::default() }).unwrap();
            let d: Vec<Difficulty> = (0..3000)
                .map(|s| {
                    let l = b.random(s);
                    l.validate().unwrap();
                    assert!(l.idle_locks().is_empty());
                    rater.difficulty(l).unwrap()
                })
                .collect();
            println!(
                "{maze:?} {n} {pairs}: first 300 {} plain {} optimised {} steps {}",
                median(d[..300].iter().map(|d| d.plain).collect()),
                median(d.iter().map(|d| d.plain).collect()),
                median(d.iter().map(|d| d.optimised).collect()),
                median(d.iter().map(|d| d.steps).collect())
            );
        }
    }
    let mut b = Builder::new(Blueprint::default()).unwrap();
    let levels: Vec<Level> = (0..1000).map(|s| b.random(s).clone()).collect();
    for method in [Method::Plain, Method::Optimised] {
        for _ in 0..3 {
            let t = cpu();
            let mut sum = 0u64;
            for _ in 0..100 {
                for l in &levels {
                    sum += rater.visited(l, method).unwrap() as u64;
                }
            }
            println!("{method:?} {:.0} levels/s {sum}", 100000.0 / (cpu() - t));
        }
    }
    let t = cpu();
    let mut sum = 0u64;
    for s in 0..100000 {
        sum += b.random(s).entry().x() as u64;
    }
    println!("build {:.0} levels/s {sum}", 100000.0 / (cpu() - t));
}
