//! Whether two small samples differ, without assuming how values are distributed.

/// The ranks of some values from 1 on; equal ones share the mean of their ranks.
pub(crate) fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&one, &other| values[one].total_cmp(&values[other]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for group in order.chunk_by(|&one, &other| values[one] == values[other]) {
        let rank = first as f64 + f64::midpoint(group.len() as f64, 1.0);
        for &at in group {
            ranks[at] = rank;
        }
        first += group.len();
    }
    ranks
}

/// The largest samples whose chances are counted rather than approximated.
const COUNTED: usize = 20;

/// The chance that two samples from one distribution differ at least this much in their ranks, to either side
/// (Mann and Whitney, 1947). Exact for small samples without equal values, by the normal distribution otherwise.
pub(crate) fn rank_sum_chance(one: &[f64], other: &[f64]) -> f64 {
    let (n, m) = (one.len(), other.len());
    if n == 0 || m == 0 {
        return 1.0;
    }
    let all: Vec<f64> = one.iter().chain(other).copied().collect();
    let ranks = ranks(&all);
    let u = ranks[..n].iter().sum::<f64>() - (n * (n + 1)) as f64 / 2.0;
    let mut sorted = all;
    sorted.sort_by(f64::total_cmp);
    let ties: f64 =
        sorted.chunk_by(|a, b| a == b).map(|group| (group.len() as f64).powi(3) - group.len() as f64).sum();
    let middle = (n * m) as f64 / 2.0;
    if ties == 0.0 && n.max(m) <= COUNTED {
        return exact_chance(n, m, (u - middle).abs());
    }
    let size = (n + m) as f64;
    let variance = (n * m) as f64 / 12.0 * (size + 1.0 - ties / (size * (size - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let z = (((u - middle).abs() - 0.5).max(0.0)) / variance.sqrt();
    libm::erfc(z / std::f64::consts::SQRT_2).min(1.0)
}

/// The share of all orders of two samples whose statistic is at least so far from its middle.
fn exact_chance(n: usize, m: usize, distance: f64) -> f64 {
    // counts[k][u]: ways to choose k of the values so far with the statistic u.
    let most = n * m;
    let mut counts = vec![vec![0.0; most + 1]; n + 1];
    counts[0][0] = 1.0;
    for value in 0..n + m {
        for taken in (1..=n.min(value + 1)).rev() {
            // The taken-th smallest of the first sample stands above `value - taken + 1` of the second.
            let above = value + 1 - taken;
            if above > m {
                continue;
            }
            for u in (above..=most).rev() {
                counts[taken][u] += counts[taken - 1][u - above];
            }
        }
    }
    let all: f64 = counts[n].iter().sum();
    let middle = most as f64 / 2.0;
    let far = counts[n].iter().enumerate().filter(|(u, _)| (*u as f64 - middle).abs() >= distance - 1e-9);
    (far.map(|(_, count)| count).sum::<f64>() / all).min(1.0)
}

/// Chances of several comparisons, each raised so that one false alarm among all of them is no likelier than said
/// (Holm, 1979).
pub(crate) fn holm(chances: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|&one, &other| chances[one].total_cmp(&chances[other]));
    let mut adjusted = vec![0.0; chances.len()];
    let mut highest: f64 = 0.0;
    for (at, &place) in order.iter().enumerate() {
        highest = highest.max(chances[place] * (chances.len() - at) as f64).min(1.0);
        adjusted[place] = highest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_their_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
    }

    /// Every choice of one sample from all ranks, counted one by one.
    fn counted(n: usize, m: usize, distance: f64) -> f64 {
        let (mut far, mut all) = (0, 0);
        for chosen in 0..1u32 << (n + m) {
            if chosen.count_ones() as usize != n {
                continue;
            }
            let sum: usize = (0..n + m).filter(|at| chosen >> at & 1 == 1).map(|at| at + 1).sum();
            let u = sum as f64 - (n * (n + 1)) as f64 / 2.0;
            all += 1;
            far += u32::from((u - (n * m) as f64 / 2.0).abs() >= distance - 1e-9);
        }
        f64::from(far) / f64::from(all)
    }

    #[test]
    fn chances_are_those_of_all_orders() {
        for (n, m) in [(1, 1), (2, 3), (4, 4), (5, 6)] {
            for twice in 0..=n * m {
                let distance = twice as f64 / 2.0;
                let (found, expected) = (exact_chance(n, m, distance), counted(n, m, distance));
                assert!((found - expected).abs() < 1e-12, "{n} {m} {distance}: {found} {expected}");
            }
        }
        // 2 of 252 orders of 5 and 5 are that extreme.
        let apart = rank_sum_chance(&[1.0, 2.0, 3.0, 4.0, 5.0], &[6.0, 7.0, 8.0, 9.0, 10.0]);
        assert!((apart - 2.0 / 252.0).abs() < 1e-12, "{apart}");
        assert!((rank_sum_chance(&[1.0; 5], &[1.0; 5]) - 1.0).abs() < 1e-12, "nothing differs");
    }

    #[test]
    fn the_approximation_is_near_the_count() {
        let one: Vec<f64> = (0..20).map(|at| f64::from(at) * 2.0 + 7.0).collect();
        let other: Vec<f64> = (0..20).map(|at| f64::from(at) * 2.0).collect();
        let exact = rank_sum_chance(&one, &other);
        // One value more than is counted, and far from the others on both sides.
        let more = |values: &[f64], last: f64| values.iter().copied().chain([last]).collect::<Vec<f64>>();
        let near = rank_sum_chance(&more(&one, -1.5), &more(&other, 98.5));
        assert!(exact > 0.005 && exact < near, "{exact} {near}");
    }

    #[test]
    fn several_comparisons_are_adjusted() {
        let adjusted = holm(&[0.01, 0.04, 0.03]);
        for (found, expected) in adjusted.iter().zip([0.03, 0.06, 0.06]) {
            assert!((found - expected).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }
}
