//! Hardware and software counters beside `verify`'s times.

use nearmiss_observe::perf::{Counters, EventSpec, Rate, Role, event, has_pmu};
use nearmiss_verify::{Error, Probe, Sample};

/// Counted where the machine has counters and the user names none.
const USUAL: [&str; 3] = ["cycles", "instructions", "cache-misses"];

/// Counts events of each run.
pub struct Counting {
    events: Vec<EventSpec>,
    counters: Option<Counters>,
    /// Counts ahead of the part that counts.
    ahead: Vec<f64>,
}

impl Counting {
    /// `None` where nothing is requested and there is nothing to count with. Errors: an event that cannot be had.
    pub fn new(names: &[String]) -> anyhow::Result<Option<Self>> {
        let usual = || USUAL.map(str::to_owned).to_vec();
        let names = match names {
            [] if has_pmu() => usual(),
            [] => return Ok(None),
            names => names.to_vec(),
        };
        let spec = |name: &String| event(name, Role::Other, Rate::Period(1));
        let events = names.iter().map(spec).collect::<Result<_, _>>()?;
        Ok(Some(Counting { events, counters: None, ahead: Vec::new() }))
    }
}

impl Probe for Counting {
    fn attach(&mut self, pid: i32) -> Result<(), Error> {
        let counters = Counters::attach(pid, &self.events).map_err(|e| Error::Parameters(e.to_string()))?;
        self.counters = Some(counters);
        self.ahead.clear();
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Error> {
        let counts = self.counters.as_mut().map(Counters::read).transpose();
        let counts = counts.map_err(|e| Error::Parameters(e.to_string()))?.unwrap_or_default();
        self.ahead = counts.into_iter().map(|(_, count)| count).collect();
        Ok(())
    }

    fn read(&mut self) -> Result<Sample, Error> {
        let Some(mut counters) = self.counters.take() else { return Ok(Sample::new()) };
        let counts = counters.read().map_err(|e| Error::Parameters(e.to_string()))?;
        let ahead = self.ahead.iter().copied().chain(std::iter::repeat(0.0));
        Ok(counts.into_iter().zip(ahead).map(|((name, count), ahead)| (name, count - ahead)).collect())
    }
}
