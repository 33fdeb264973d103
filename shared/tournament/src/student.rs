//! Student's distribution: how far a mean of few values may be off.

/// The share of the distribution with this number of degrees of freedom, at least one, that lies within `t` to both sides.
///
/// With t = √n tan φ it is a multiple of the integral of cosⁿ⁻¹ φ, which is smooth: Simpson's rule needs few steps.
pub(crate) fn within(t: f64, degrees: f64) -> f64 {
    const STEPS: u32 = 400;
    let whole = libm::lgamma(f64::midpoint(degrees, 1.0)) - libm::lgamma(degrees / 2.0);
    let factor = 2.0 * libm::exp(whole) / std::f64::consts::PI.sqrt();
    let step = libm::atan(t / degrees.sqrt()) / f64::from(STEPS);
    let value = |at: u32| libm::pow(libm::cos(f64::from(at) * step), degrees - 1.0);
    let weight = |at: u32| match at {
        0 | STEPS => 1.0,
        odd if odd % 2 == 1 => 4.0,
        _ => 2.0,
    };
    let sum: f64 = (0..=STEPS).map(|at| weight(at) * value(at)).sum();
    factor * sum * step / 3.0
}

/// How far to both sides 95 % of the distribution reach.
pub(crate) fn confidence(degrees: f64) -> f64 {
    // The normal distribution and one degree of freedom are the extremes.
    let (mut low, mut high) = (1.9, 13.0);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if within(middle, degrees) < 0.95 {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let table = [
            (1.0, 12.7062),
            (2.0, 4.3027),
            (3.0, 3.1824),
            (4.0, 2.7764),
            (8.0, 2.3060),
            (30.0, 2.0423),
            (500.0, 1.9647),
        ];
        for (degrees, quantile) in table {
            let found = confidence(degrees);
            assert!((found - quantile).abs() < 1e-4, "{degrees} degrees: {found}, not {quantile}");
        }
    }

    #[test]
    fn one_degree_is_cauchys_distribution() {
        for t in [0.0, 0.3, 1.0, 5.0] {
            assert!((within(t, 1.0) - t.atan() / std::f64::consts::FRAC_PI_2).abs() < 1e-12, "{t}");
        }
    }
}
