//! Choice of the calibration: a quiet one is kept, a noisy one serves the process that measured it.

use super::store::{Store, identity};
use super::{Calibration, Found, TouchFigures, calibrate, quiet, touches};
use nearmiss_record::machine::Noise;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The noisy result of this process, with the machine that it is of: two figures of one run come from one calibration.
static AT_HAND: Mutex<Option<(String, Calibration)>> = Mutex::new(None);

/// Returns the kept calibration if it is quiet, else the result of `measure`, which is kept if it is quiet. `again`
/// measures in any case; a quiet kept calibration still counts more than a noisy new one.
pub fn chosen(found: &Found, store: &Store, again: bool, measure: impl FnOnce(&Found) -> Calibration) -> Calibration {
    let kept = store.load(found).map(|kept| judged(found, kept)).filter(|kept| noise(kept).caution.is_none());
    match kept {
        Some(kept) if !again => kept,
        kept => {
            let measured = judged(found, measure(found));
            match (noisy(found, &measured), kept) {
                (None, _) => {
                    // A cache that cannot be written costs a few seconds the next time, nothing else.
                    let _ = store.save(found, &measured);
                    measured
                }
                (Some(why), Some(kept)) => with_caution(kept, stands(&why)),
                (Some(_), None) => measured,
            }
        }
    }
}

/// Adds first touches to a calibration of an earlier version, which lacks them. `measure` also gives whether they are
/// worth keeping; the kept calibration then gets them.
pub fn with_touches(
    found: &Found,
    store: &Store,
    calibration: Calibration,
    measure: impl FnOnce() -> (TouchFigures, bool),
) -> Calibration {
    if calibration.touches.small_ns.is_some() {
        return calibration;
    }
    let (touches, worth_keeping) = measure();
    if let Some(kept) = store.load(found).filter(|_| worth_keeping && touches.small_ns.is_some()) {
        // A cache that cannot be written costs some milliseconds the next time, nothing else.
        let _ = store.save(found, &Calibration { touches: touches.clone(), ..kept });
    }
    Calibration { touches, ..calibration }
}

/// Measures first touches once a process; they are worth keeping if their takes agree and the machine was quiet.
pub fn touches_here(found: &Found) -> (TouchFigures, bool) {
    static AT_HAND: OnceLock<(TouchFigures, Noise)> = OnceLock::new();
    let (touches, noise) = AT_HAND.get_or_init(|| {
        let before = quiet::CpuCounts::now();
        let touches = touches::measure();
        // It is too short for a share of the time without a CPU.
        (touches, Noise { waited_share: None, ..quiet::between(&before, &quiet::CpuCounts::now()) })
    });
    let agree = [touches.small_ns, touches.large_ns].into_iter().flatten().all(|figure| figure.stable());
    (touches.clone(), agree && quiet::noisy(noise, found.cpus().count()).is_none())
}

/// Measures this host and its other load meanwhile; a noisy result is measured once a process.
pub fn measured_here(found: &Found, again: bool) -> Calibration {
    let mut at_hand = AT_HAND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, calibration)) = at_hand.as_ref().filter(|(of, _)| !again && *of == identity(found)) {
        return calibration.clone();
    }
    let before = quiet::CpuCounts::now();
    let measured = calibrate(found);
    let noise = Noise { spread: noise(&measured).spread, ..quiet::between(&before, &quiet::CpuCounts::now()) };
    let measured = Calibration { noise: Some(noise), ..measured };
    *at_hand = noisy(found, &measured).map(|_| (identity(found), measured.clone()));
    measured
}

/// The calibration with the caution that its noise deserves. One of an earlier version has no more than its spread.
fn judged(found: &Found, calibration: Calibration) -> Calibration {
    let caution = noisy(found, &calibration).map(|why| rough(&why));
    let noise = Noise { spread: spread(&calibration), caution, ..noise(&calibration) };
    Calibration { noise: Some(noise), ..calibration }
}

fn noise(calibration: &Calibration) -> Noise {
    calibration.noise.clone().unwrap_or_default()
}

fn noisy(found: &Found, calibration: &Calibration) -> Option<String> {
    quiet::noisy(&Noise { spread: spread(calibration), ..noise(calibration) }, found.cpus().count())
}

/// The widest spread of the latencies, and of those figures that settle within a tenth on a quiet machine.
fn spread(calibration: &Calibration) -> Option<f64> {
    let of_latencies = noise(calibration).spread;
    let of_figures = calibration.steady_spreads();
    let all = of_latencies.into_iter().chain(of_figures).filter(|spread| spread.is_finite());
    all.max_by(f64::total_cmp).map(|most| (most.max(0.0) * 100.0).round() / 100.0)
}

fn with_caution(calibration: Calibration, caution: String) -> Calibration {
    let noise = Noise { caution: Some(caution), ..noise(&calibration) };
    Calibration { noise: Some(noise), ..calibration }
}

fn rough(why: &str) -> String {
    format!(
        "host was calibrated beside other work ({why}); its figures are rough and not kept, run again when it is quiet"
    )
}

fn stands(why: &str) -> String {
    format!("the new calibration was noisy ({why}); the quiet one from before stays, run again when the host is quiet")
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
