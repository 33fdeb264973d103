use match3::*;
fn cpu() -> f64 {
    let s = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    s.split(' ').next().unwrap().parse::<f64>().unwrap() * 1e-9
}
fn main() {
    let rules = Rules::default();
    let game = Game::new(&rules).unwrap();
    let boards: Vec<Board> = (0..100).map(|s| Board::from_seed(&rules, s)).collect();
    let wide = Rules { width: 5, height: 10, initial_matches: InitialMatches::Clear, ..rules.clone() };
    let _ = wide;
    for round in 0..3 {
        let t = cpu();
        let mut plays = vec![Play::default(); 2000];
        let mut sum = 0.0;
        for b in &boards {
            game.plays(b, Player::Random, 1, 0, &mut plays).unwrap();
            sum += plays.iter().map(|p| p.score).sum::<f64>();
        }
        println!("{round} lanes {:.0} plays/s mean {}", 200000.0 / (cpu() - t), sum / 200000.0);
        let t = cpu();
        let mut sum = 0.0;
        let mut plays = vec![Play::default(); 200];
        for b in &boards {
            game.plays(b, Player::Mixture { skill: 0.0 }, 1, 0, &mut plays).unwrap();
            sum += plays.iter().map(|p| p.score).sum::<f64>();
        }
        println!("{round} scalar {:.0} plays/s mean {}", 20000.0 / (cpu() - t), sum / 20000.0);
    }
}
