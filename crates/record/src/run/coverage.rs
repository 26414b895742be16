//! How much of a command a trace has.

use crate::words::{counted, percent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Recorded part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// Parts that were recorded.
    pub parts: u32,
    /// Wall time in which it was recorded, of `reached_ns`, *measured*.
    pub recorded_ns: u64,
    /// Wall time from the window's opening to its end, *measured*.
    pub reached_ns: u64,
    /// The command was ended there, before its end.
    pub ended: bool,
    /// Wall time of the command ahead of the window, *measured*.
    #[serde(default)]
    pub ahead_ns: u64,
    /// Nanoseconds of the guest's clock in a second of a pause, *measured*; 0: unknown.
    #[serde(default)]
    pub paused_ns_a_second: u64,
    /// Nanoseconds of the guest's clock that were recorded, of `reached_guest_ns`, *measured*: the emulator runs on many
    /// times as fast in a pause. 0: unknown.
    #[serde(default)]
    pub recorded_guest_ns: u64,
    /// Nanoseconds of the guest's clock from the window's opening to its end, *measured*; 0: unknown.
    #[serde(default)]
    pub reached_guest_ns: u64,
    /// Pages that the guest's kernel cleared in the parts, of `reached_cleared_pages`, *measured*.
    #[serde(default)]
    pub recorded_cleared_pages: u64,
    /// Pages that the guest's kernel cleared from the window's opening to its end, *measured*; 0: none, or unknown.
    #[serde(default)]
    pub reached_cleared_pages: u64,
}

impl Coverage {
    /// Share of a run from which on what was recorded stands for the rest.
    pub const LITTLE: f64 = 0.5;

    /// Whether something was not recorded before the end.
    pub fn has_pauses(&self) -> bool {
        self.recorded_ns < self.reached_ns
    }

    /// Share of the time from the window's opening to its end that was recorded, by the guest's clock; none where unknown.
    pub fn share_by_guest(&self) -> Option<f64> {
        let known = self.has_pauses() && self.recorded_guest_ns != 0 && self.reached_guest_ns != 0;
        known.then(|| (self.recorded_guest_ns as f64 / self.reached_guest_ns as f64).min(1.0))
    }

    /// Pages that the kernel cleared in a second of the guest's clock, from the window's opening to its end, by those of a
    /// second that was recorded; none where unknown.
    pub fn cleared_by_recorded(&self) -> Option<f64> {
        let share = self.share_by_guest().filter(|_| self.recorded_cleared_pages != 0)?;
        Some(share * self.reached_cleared_pages as f64 / self.recorded_cleared_pages as f64)
    }

    /// Returns a sentence for readers of the figures; none if all was recorded.
    pub fn sentence(&self) -> Option<String> {
        let seconds = |ns: u64| format!("{:.1} s", ns as f64 / 1e9);
        let (recorded, reached) = (seconds(self.recorded_ns), seconds(self.reached_ns));
        let parts = counted(self.parts.into(), "part");
        let behind = match self.ahead_ns {
            0 => String::new(),
            ahead => format!(" behind its first {}", seconds(ahead)),
        };
        let time = format!("{recorded} of the {reached} that the command ran in the guest{behind}");
        let parts = match self.share_by_guest() {
            Some(share) => format!("{parts}, {} of the command's time by the guest's clock ({time})", percent(share)),
            None => format!("{parts}, {time}"),
        };
        match (self.parts, self.ended) {
            (..2, false) if !self.has_pauses() => None,
            (..2, false) => Some(format!("Recorded: {parts}; nothing behind it was seen.")),
            (_, false) => Some(format!("Recorded: {parts}; nothing between them was seen.")),
            (..2, true) => Some(format!(
                "Recorded: {recorded} of the command's run in the guest{behind}. It was ended there; nothing behind was seen."
            )),
            (_, true) => Some(format!(
                "Recorded: {parts}. It was ended there; nothing between the parts or behind them was seen."
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(parts: u32, recorded_s: u64, ended: bool) -> Option<String> {
        let [recorded_ns, reached_ns] = [recorded_s, 6].map(|s| s * 1_000_000_000);
        Coverage { parts, recorded_ns, reached_ns, ended, ..Coverage::default() }.sentence()
    }

    #[test]
    fn only_a_run_without_a_pause_and_to_its_end_is_whole() {
        assert_eq!(sentence(1, 6, false), None);
        let of = |parts, recorded_s, ended| sentence(parts, recorded_s, ended).unwrap_or_default();
        let behind =
            "Recorded: 1 part, 4.0 s of the 6.0 s that the command ran in the guest; nothing behind it was seen.";
        assert_eq!(of(1, 4, false), behind);
        assert!(of(2, 4, false).starts_with("Recorded: 2 parts, 4.0 s of the 6.0 s"));
        assert!(of(2, 4, false).ends_with("; nothing between them was seen."));
        assert!(of(1, 6, true).ends_with("It was ended there; nothing behind was seen."));
        assert!(of(2, 4, true).ends_with("nothing between the parts or behind them was seen."));
        let known = Coverage {
            parts: 3,
            recorded_ns: 3_000_000_000,
            reached_ns: 3_500_000_000,
            recorded_guest_ns: 68,
            reached_guest_ns: 1000,
            ..Coverage::default()
        };
        let text = "Recorded: 3 parts, 6.8% of the command's time by the guest's clock (3.0 s of the 3.5 s that the \
                    command ran in the guest); nothing between them was seen.";
        assert_eq!(known.sentence().as_deref(), Some(text));
        assert_eq!(known.cleared_by_recorded(), None);
        let cleared = Coverage { recorded_cleared_pages: 34, reached_cleared_pages: 250, ..known };
        assert_eq!(cleared.cleared_by_recorded(), Some(0.5), "250 in 1,000 ns, and 34 in 68 ns");
        let late = Coverage {
            parts: 2,
            recorded_ns: 1,
            reached_ns: 2,
            ended: true,
            ahead_ns: 900_000_000,
            ..Coverage::default()
        };
        assert!(
            late.sentence().is_some_and(|text| text.contains(" in the guest behind its first 0.9 s. It was ended"))
        );
    }
}
