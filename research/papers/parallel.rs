//! Independent simulations on all threads of the machine, with results in the order of the inputs.

use crate::PaperError;
use rayon::prelude::*;

/// Simulates each input and calls `done` after each. If several simulations fail, the error is the one of the first
/// input.
pub fn simulate_all<I: Sync, O: Send>(
    inputs: &[I],
    done: &(dyn Fn() + Sync),
    simulate: impl Fn(&I) -> Result<O, PaperError> + Sync,
) -> Result<Vec<O>, PaperError> {
    let outputs = inputs.par_iter().with_max_len(1).map(|input| {
        let output = simulate(input);
        done();
        output
    });
    // Collecting straight into a Result would return whichever error came first in time.
    outputs.collect::<Vec<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[test]
    fn outputs_and_errors_follow_the_order_of_the_inputs() {
        let (inputs, finished): (Vec<u32>, _) = ((0..100).collect(), AtomicUsize::new(0));
        let done = || _ = finished.fetch_add(1, Ordering::Relaxed);
        let doubled = simulate_all(&inputs, &done, |input| Ok(input * 2));
        assert_eq!(doubled.ok(), Some((0..100).map(|input| input * 2).collect()));
        assert_eq!(finished.into_inner(), inputs.len());
        // The first of two errors comes last in time.
        let failed = simulate_all(&inputs, &|| (), |&input| match input {
            1 => {
                std::thread::sleep(Duration::from_millis(50));
                Err(PaperError::Colors(1))
            }
            99 => Err(PaperError::Colors(99)),
            _ => Ok(()),
        });
        assert!(matches!(failed, Err(PaperError::Colors(1))), "{failed:?}");
    }
}
