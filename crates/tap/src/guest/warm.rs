//! Work of the guest between its boot and the command, under the host's clock.

use std::time::{Duration, Instant};

use super::config::WarmUp;
use super::messages::{GuestEvent, WarmEnd, WarmFiles};
use super::{Guest, GuestError};

/// Reading ahead may take this part of the boot's time.
const PART_OF_BOOT: u32 = 10;

/// Result of the warm-up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Warmth {
    /// The command's process, once there is one.
    pub command: Option<u32>,
    /// Files read ahead, *measured*.
    pub files: WarmFiles,
    /// How the run ahead ended, if there was one.
    pub run: Option<WarmEnd>,
    /// The time of that run, *measured*.
    pub run_time: Duration,
}

impl Guest {
    /// Lets the agent warm the guest and start the command; returns when the command's process exists, or the guest has
    /// ended. `boot`: how long the guest took to boot.
    pub fn go_warmly(&self, how: WarmUp, boot: Duration) -> Result<Warmth, GuestError> {
        let mut warmth = Warmth::default();
        let mut began = Instant::now();
        let mut limit = (how != WarmUp::Nothing).then_some((boot / PART_OF_BOOT, "enough files"));
        self.go()?;
        loop {
            let left = limit.map(|(time, _)| time.saturating_sub(began.elapsed()));
            match (self.next_event(left), limit) {
                (Some(GuestEvent::Warmed(files)), _) => {
                    warmth.files = files;
                    began = Instant::now();
                    limit = match how {
                        WarmUp::Run(time) => Some((time, "enough run")),
                        _ => None,
                    };
                }
                (Some(GuestEvent::WarmRun(end)), _) => {
                    (warmth.run, warmth.run_time) = (Some(end), began.elapsed());
                    limit = None;
                }
                (Some(GuestEvent::Begin { pid }), _) => return Ok(Warmth { command: Some(pid), ..warmth }),
                (Some(_), _) => {}
                (None, Some((time, enough))) if began.elapsed() >= time => {
                    self.order(enough)?;
                    limit = None;
                }
                (None, _) => return Ok(warmth),
            }
        }
    }
}
