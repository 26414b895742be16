//! Makes the rows of a table sum to its total when the two come from different counters.
//!
//! References that the filter dropped are counted twice, by instruction and by task, and neither counter sees
//! interrupts. The total follows the first. A table that follows the second is fitted here: the missing part is
//! returned, for the unattributed row, and the excess is taken from the rows in proportion.

/// Reduces `values` in proportion until they sum to at most `target`; returns the shortfall of the sum.
pub(super) fn fit(values: &mut [u64], target: u64) -> u64 {
    let sum: u128 = values.iter().map(|v| u128::from(*v)).sum();
    let target_wide = u128::from(target);
    if sum <= target_wide {
        return (target_wide - sum) as u64;
    }
    // Largest remainders: deterministic, and no row ends above its old value.
    let mut remainders = Vec::with_capacity(values.len());
    let mut left = target;
    for (index, value) in values.iter_mut().enumerate() {
        let scaled = u128::from(*value) * target_wide;
        *value = (scaled / sum) as u64;
        left -= *value;
        remainders.push((scaled % sum, index));
    }
    remainders.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    for (_, index) in remainders.into_iter().take(left as usize) {
        values[index] += 1;
    }
    0
}

/// Splits `amount` in proportion to `weights`, exactly; all of it to the first part when every weight is 0.
pub(super) fn split<const N: usize>(amount: u64, weights: [u64; N]) -> [u64; N] {
    let mut parts = weights;
    if fit(&mut parts, amount) == 0 {
        return parts;
    }
    let sum: u128 = weights.iter().map(|w| u128::from(*w)).sum();
    let mut rest = amount;
    for (part, weight) in parts.iter_mut().zip(weights).skip(1) {
        *part = (u128::from(amount) * u128::from(weight)).checked_div(sum).unwrap_or(0) as u64;
        rest -= *part;
    }
    parts[0] = rest;
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_shrink_in_proportion_or_leave_a_rest() {
        let mut rows = [10, 20, 30];
        assert_eq!(fit(&mut rows, 100), 40);
        assert_eq!(rows, [10, 20, 30]);
        assert_eq!(fit(&mut rows, 31), 0);
        assert_eq!(rows, [5, 10, 16]);
        assert_eq!(split(10, [0, 0, 0]), [10, 0, 0]);
        assert_eq!(split(100, [1, 1, 2]), [25, 25, 50]);
        assert_eq!(split(3, [4, 4, 4]), [1, 1, 1]);
    }

    proptest! {
        #[test]
        fn parts_sum_to_the_amount(amount: u64, weights: [u64; 3]) {
            let parts = split(amount, weights);
            prop_assert_eq!(parts.iter().map(|p| u128::from(*p)).sum::<u128>(), u128::from(amount));
        }

        #[test]
        fn fitted_rows_and_rest_sum_to_the_target(mut rows in proptest::collection::vec(any::<u64>(), 0..9), target: u64) {
            let before = rows.clone();
            let rest = fit(&mut rows, target);
            prop_assert_eq!(rows.iter().map(|p| u128::from(*p)).sum::<u128>() + u128::from(rest), u128::from(target));
            prop_assert!(rows.iter().zip(&before).all(|(now, then)| now <= then));
        }
    }
}
