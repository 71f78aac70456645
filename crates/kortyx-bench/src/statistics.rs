//! Samples of what is measured and of what it is held against.

/// Samples taken in turn, so that what disturbs the machine disturbs both alike.
#[derive(Debug, Default, Clone)]
pub(crate) struct Pairs {
    measured: Vec<f64>,
    reference: Vec<f64>,
}

impl Pairs {
    /// Adds what was measured close together.
    pub(crate) fn push(&mut self, measured: f64, reference: f64) {
        self.measured.push(measured);
        self.reference.push(reference);
    }

    /// The middle of what was measured.
    pub(crate) fn measured(&self) -> f64 {
        median(&self.measured)
    }

    /// The middle of the reference.
    pub(crate) fn reference(&self) -> f64 {
        median(&self.reference)
    }

    /// The middle of the ratios of samples that were taken together.
    pub(crate) fn ratio(&self) -> f64 {
        let ratios: Vec<f64> = self.measured.iter().zip(&self.reference).map(|(a, b)| a / b).collect();
        median(&ratios)
    }
}

/// The middle of the samples; not a number when there are none.
pub(crate) fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    if sorted.len().is_multiple_of(2) { f64::midpoint(at(half.wrapping_sub(1)), at(half)) } else { at(half) }
}

/// The sample that so many hundredths of all are not above (the nearest rank); not a number when there are none.
pub(crate) fn percentile(samples: &[f64], hundredths: usize) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * hundredths).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these are exact")]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_sample_or_between_the_two() {
        assert_eq!(median(&[3.0, 100.0, 1.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0, 100.0, 2.0]), 3.0);
        assert_eq!(median(&[7.0]), 7.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_percentile_is_the_sample_that_so_many_are_not_above() {
        let samples: Vec<f64> = (1..=200).rev().map(f64::from).collect();

        assert_eq!((percentile(&samples, 50), percentile(&samples, 99)), (100.0, 198.0));
        assert_eq!(percentile(&samples, 100), 200.0);
        assert_eq!(percentile(&[7.0], 99), 7.0);
        assert!(percentile(&[], 99).is_nan());
    }

    #[test]
    fn the_ratio_is_that_of_samples_taken_together() {
        let mut pairs = Pairs::default();
        // The machine gets slower and slower; the ratio stays.
        for slowness in [1.0, 2.0, 4.0] {
            pairs.push(100.0 / slowness, 200.0 / slowness);
        }

        assert_eq!(pairs.ratio(), 0.5);
        assert_eq!((pairs.measured(), pairs.reference()), (50.0, 100.0));
    }

    #[test]
    fn one_disturbed_sample_changes_nothing() {
        let mut pairs = Pairs::default();
        for (measured, reference) in [(100.0, 200.0), (3.0, 200.0), (100.0, 200.0)] {
            pairs.push(measured, reference);
        }

        assert_eq!(pairs.ratio(), 0.5);
    }
}
