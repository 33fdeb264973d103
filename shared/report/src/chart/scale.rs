//! From values to pixels, and the round values that are written at an axis.

use crate::text;

/// How values are spread over an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stretch {
    /// Evenly.
    #[default]
    Linear,
    /// By their square root, so that small ones stay visible beside large ones; nothing is below zero.
    Root,
}

/// An axis: values on one side, pixels on the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    stretch: Stretch,
}

impl Scale {
    /// An axis over these values, which may be few, equal or not finite.
    pub(super) fn over(values: impl Iterator<Item = f64>, from: f64, to: f64, stretch: Stretch) -> Self {
        let finite = values.filter(|value| value.is_finite());
        let (low, high) = finite
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (value.min(low), value.max(high)));
        let low = if stretch == Stretch::Root { 0.0 } else { low };
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        let room = if low == high { (low.abs() * 0.1).max(0.5) } else { 0.0 };
        let low = if stretch == Stretch::Root { low } else { low - room };
        Self { low, high: high + room, from, to, stretch }
    }

    /// The same with some room above the highest value, so that a curve does not touch the edge.
    pub(super) fn with_headroom(self) -> Self {
        Self { high: self.high + 0.06 * (self.high - self.low), ..self }
    }

    /// Where it begins, in pixels.
    pub(super) fn start(&self) -> f64 {
        self.from
    }

    pub(super) fn at(&self, value: f64) -> f64 {
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        let share = if self.stretch == Stretch::Root { share.sqrt() } else { share };
        self.from + share * (self.to - self.from)
    }

    /// About this number of round values within the axis, with their texts.
    pub(super) fn ticks(&self, about: usize) -> Vec<(f64, String)> {
        let step = round_step((self.high - self.low) / about.max(1) as f64);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        let ticks = (first..=last.min(first + 50)).map(|at| at as f64 * step);
        ticks.map(|tick| (tick, label(tick, step))).collect()
    }
}

/// The power of ten times 1, 2 or 5 that is nearest above.
fn round_step(rough: f64) -> f64 {
    let rough = if rough.is_finite() && rough > 0.0 { rough.max(1e-300) } else { 1.0 };
    let mut power = 1.0_f64;
    while power > rough {
        power /= 10.0;
    }
    while power * 10.0 <= rough {
        power *= 10.0;
    }
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough * 0.999);
    factor.unwrap_or(10.0) * power
}

/// A tick with as many digits as its step has.
fn label(tick: f64, step: f64) -> String {
    if tick == 0.0 && !(1e-4..1e6).contains(&step) {
        return "0".to_owned();
    }
    if (1e6..1e9).contains(&tick.abs()) && step >= 1e4 {
        return format!("{} M", text::number(tick / 1e6));
    }
    if tick.abs() >= 1e6 || step < 1e-4 {
        return exponent(tick);
    }
    let mut digits = 0;
    let mut unit = 1.0;
    while unit > step * 1.001 && digits < 6 {
        unit /= 10.0;
        digits += 1;
    }
    if digits == 0 && tick >= 10_000.0 { text::count(tick as u64) } else { format!("{tick:.digits$}") }
}

fn exponent(tick: f64) -> String {
    let text = format!("{tick:.2e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{}e{exponent}", mantissa.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(low: f64, high: f64) -> Vec<String> {
        let scale = Scale::over([low, high].into_iter(), 0.0, 1.0, Stretch::Linear);
        scale.ticks(5).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(0.0, 10.0), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(-0.1, 0.31), ["-0.1", "0.0", "0.1", "0.2", "0.3"]);
        assert_eq!(labels(0.0, 2e6), ["0", "500\u{202f}000", "1 M", "1.5 M", "2 M"]);
        assert_eq!(labels(5.0, 5.0).len(), 5);
        assert_eq!(labels(f64::NAN, f64::INFINITY), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
    }

    proptest! {
        #[test]
        fn ticks_are_few_and_on_the_axis(low in -1e12..1e12f64, width in 1e-6..1e12f64) {
            let scale = Scale::over([low, low + width].into_iter(), 0.0, 100.0, Stretch::Linear);
            let ticks = scale.ticks(5);
            prop_assert!(ticks.len() <= 12);
            for (tick, _) in ticks {
                prop_assert!((0.0..=100.0).contains(&scale.at(tick)));
            }
        }
    }
}
