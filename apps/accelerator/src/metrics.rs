//! Counters, one set a thread, so that no thread waits for another one's cache line.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// One number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub fn one(&self) {
        self.add(1);
    }

    /// Adds to the counter. Only the counter's own thread writes, so no locked operation is needed.
    pub fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }

    /// Replaces the count, where another part counts.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($name:ident $help:literal,)*) => {
        /// Counters of one thread.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub struct Counters {
            $(#[doc = $help] pub $name: Counter,)*
        }

        /// All threads' counters, summed, in Prometheus' text format.
        pub fn text(threads: &[Counters]) -> String {
            let mut out = String::new();
            $(
                let sum: u64 = threads.iter().map(|counters| counters.$name.get()).sum();
                let name = concat!("nearmiss_", stringify!($name), "_total");
                _ = write!(out, "# HELP {name} {}\n# TYPE {name} counter\n{name} {sum}\n", $help);
            )*
            out
        }
    };
}

counters! {
    connections "Clients' connections taken.",
    connections_refused "Clients' connections closed at once, over the limit.",
    requests "Requests read.",
    requests_refused "Requests refused as unreadable or too large.",
    hits "Requests answered from the cache, fresh.",
    hits_stale "Requests answered from the cache, stale.",
    misses "Requests sent to an origin for a response that could be stored.",
    collapsed "Requests that shared another one's fetch.",
    passed "Requests handed to an origin, their answer not stored.",
    revalidations "Stored responses validated at an origin.",
    stored "Responses stored.",
    invalidated "Keys made invalid by a changing request.",
    bytes_sent "Bytes sent to clients.",
    origin_connections "Connections opened to origins.",
    origin_reused "Requests sent over a kept connection to an origin.",
    origin_retries "Requests tried once more.",
    origin_failures "Fetches without a whole response.",
    timeouts "Connections given up by time.",
    waits "Waits for events.",
    events "Events that they returned.",
    pace_sleeps "Sleeps before a wait.",
    pace_slept_microseconds "How long those took.",
}

/// A gauge in the same format.
pub fn gauge(out: &mut String, name: &str, help: &str, value: u64) {
    _ = write!(out, "# HELP nearmiss_{name} {help}\n# TYPE nearmiss_{name} gauge\nnearmiss_{name} {value}\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_summed() {
        let threads = [Counters::default(), Counters::default()];
        threads[0].hits.one();
        threads[1].hits.add(2);
        let text = text(&threads);
        assert!(text.contains("\n# TYPE nearmiss_hits_total counter\nnearmiss_hits_total 3\n"), "{text}");
    }
}
