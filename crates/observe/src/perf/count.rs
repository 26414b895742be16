//! Counting, without samples: what a command and all it starts did, from its first instruction on.

use super::open::{open_one, refusal};
use super::{EventSpec, PerfError};
use perf_event_open_sys::bindings as sys;
use std::fs::File;
use std::io::Read;

/// Counters on one command.
pub struct Counters {
    open: Vec<(String, File)>,
}

impl Counters {
    /// Attaches to a process that has not run yet; counting begins when it executes its program. An event that the
    /// kernel gives this user in user mode alone is counted there and named as `perf` names it: `cycles:u`.
    pub fn attach(pid: i32, events: &[EventSpec]) -> Result<Self, PerfError> {
        let open = events.iter().map(|event| match open_one(attributes(event, false), pid, u32::MAX, 0) {
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
                let descriptor = open_one(attributes(event, true), pid, u32::MAX, 0).map_err(|e| refusal(event, &e))?;
                Ok((format!("{}:u", event.name), File::from(descriptor)))
            }
            Err(error) => Err(refusal(event, &error)),
            Ok(descriptor) => Ok((event.name.clone(), File::from(descriptor))),
        });
        Ok(Counters { open: open.collect::<Result<_, PerfError>>()? })
    }

    /// Returns the counts, by event; where events shared a counter, scaled up to the whole time.
    pub fn read(&mut self) -> Result<Vec<(String, f64)>, PerfError> {
        self.open
            .iter_mut()
            .map(|(name, file)| {
                let mut bytes = [0; 24];
                file.read_exact(&mut bytes).map_err(|source| PerfError::System { step: "read a counter", source })?;
                let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default()) as f64;
                let (count, enabled, running) = (number(0), number(8), number(16));
                Ok((name.clone(), if running > 0.0 { count * enabled / running } else { 0.0 }))
            })
            .collect()
    }
}

/// The attributes of an event that counts.
fn attributes(event: &EventSpec, user_alone: bool) -> sys::perf_event_attr {
    let mut attr = sys::perf_event_attr::default();
    attr.type_ = event.kind;
    attr.size = size_of::<sys::perf_event_attr>() as u32;
    attr.config = event.config;
    attr.__bindgen_anon_3.config1 = event.config1;
    attr.read_format = (sys::PERF_FORMAT_TOTAL_TIME_ENABLED | sys::PERF_FORMAT_TOTAL_TIME_RUNNING).into();
    attr.set_exclude_kernel(user_alone.into());
    attr.set_exclude_hv(1);
    attr.set_disabled(1);
    attr.set_enable_on_exec(1);
    attr.set_inherit(1);
    attr
}
