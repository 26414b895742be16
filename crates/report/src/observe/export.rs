//! An observed run for other tools: folded stacks, pprof, Firefox Profiler, Perfetto.

use super::hot::{event_of, samples};
use crate::name::plain;
use crate::pprof;
use crate::stacks::folded_stacks;
use fxprof_processed_profile as fx;
use nearmiss_record::observed::{Observed, Profile, Sample};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::SystemTime;

/// Stacks of an event, outermost frame first, joined by `;`, a space, and the samples: what flame-graph tools read.
pub fn folded(profile: &Profile, event: u32) -> String {
    folded_stacks(outermost_first(profile, event).into_iter().map(|stack| (stack, 1)))
}

/// The frames of each sample of an event, behind the name of its thread.
pub(super) fn outermost_first(profile: &Profile, event: u32) -> Vec<Vec<&str>> {
    let stack = |sample: &Sample| {
        let thread = profile.threads.get(sample.thread as usize).map_or("?", |t| t.2.as_str());
        let mut frames = names(profile, sample);
        frames.push(thread);
        frames.reverse();
        frames
    };
    samples(profile, event).map(stack).collect()
}

fn names<'a>(profile: &'a Profile, sample: &Sample) -> Vec<&'a str> {
    let stack = profile.stacks.get(sample.stack as usize).map_or(&[][..], Vec::as_slice);
    stack.iter().filter_map(|i| profile.frames.get(*i as usize)).map(|f| f.function.as_str()).collect()
}

/// Exports for `pprof`: by event, samples and the events they stand for.
///
/// Errors: the compressor's.
pub fn to_pprof(observed: &Observed) -> io::Result<Vec<u8>> {
    let empty = Profile::default();
    let profile = observed.profile.as_ref().unwrap_or(&empty);
    let mut kinds: Vec<(String, &str)> = Vec::new();
    for event in &profile.events {
        kinds.push((format!("{}_samples", event.name), "count"));
        kinds.push((event.name.clone(), if event.name.ends_with("-clock") { "nanoseconds" } else { "count" }));
    }
    let mut sums: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for event in 0..profile.events.len() {
        for sample in samples(profile, event as u32) {
            let values = sums.entry(sample.stack).or_insert_with(|| vec![0; kinds.len()]);
            for (at, more) in [(2 * event, 1), (2 * event + 1, sample.weight)] {
                if let Some(value) = values.get_mut(at) {
                    *value += more;
                }
            }
        }
    }
    let stacks = sums.into_iter().map(|(stack, values)| {
        let probe = Sample { stack, ..Sample::default() };
        (names(profile, &probe), values)
    });
    pprof::of_stacks(&observed.target, observed.duration_ns, &kinds, stacks)
}

/// Exports for the Firefox Profiler (profiler.firefox.com, which reads it in the browser and sends it nowhere).
///
/// Errors: none but the serialiser's.
pub fn firefox(observed: &Observed) -> serde_json::Result<Vec<u8>> {
    let empty = Profile::default();
    let profile = observed.profile.as_ref().unwrap_or(&empty);
    let event = event_of(profile, "clock").unwrap_or(0);
    let hz = profile.events.get(event as usize).map_or(0, |e| e.frequency_hz).max(1);
    let interval = fx::SamplingInterval::from_nanos(1_000_000_000 / hz);
    let mut out = fx::Profile::new(&plain(&observed.target), SystemTime::UNIX_EPOCH.into(), interval);
    let kernel = out.add_category("Kernel", fx::CategoryColor::Orange);
    let user = out.add_category("User", fx::CategoryColor::Blue);
    let start = fx::Timestamp::from_nanos_since_reference(0);
    let mut processes: HashMap<i32, fx::ProcessHandle> = HashMap::new();
    let mut threads: HashMap<u32, fx::ThreadHandle> = HashMap::new();
    for sample in samples(profile, event) {
        let Some((pid, tid, name)) = profile.threads.get(sample.thread as usize) else { continue };
        let thread = match threads.get(&sample.thread) {
            Some(thread) => *thread,
            None => {
                let process = *processes
                    .entry(*pid)
                    .or_insert_with(|| out.add_process(&plain(name), (*pid).max(0) as u32, start));
                let thread = out.add_thread(process, (*tid).max(0) as u32, start, pid == tid);
                out.set_thread_name(thread, &plain(name));
                threads.insert(sample.thread, thread);
                thread
            }
        };
        let stack = profile.stacks.get(sample.stack as usize).map_or(&[][..], Vec::as_slice);
        let frames: Vec<fx::FrameInfo> = stack
            .iter()
            .rev()
            .filter_map(|i| profile.frames.get(*i as usize))
            .map(|frame| fx::FrameInfo {
                frame: fx::Frame::Label(out.intern_string(&plain(&frame.function))),
                category_pair: if frame.kernel { kernel } else { user }.into(),
                flags: fx::FrameFlags::empty(),
            })
            .collect();
        let stack = out.intern_stack_frames(thread, frames.into_iter());
        let at = fx::Timestamp::from_nanos_since_reference(sample.at_ns);
        out.add_sample(thread, at, stack, fx::CpuDelta::from_nanos(1_000_000_000 / hz), 1);
    }
    serde_json::to_vec(&out)
}

/// Exports for Perfetto (ui.perfetto.dev) and chrome://tracing: phases, counters and, by thread, the function each
/// clock sample fell on, a slice as long as the sampling period.
///
/// Errors: none but the serialiser's.
pub fn perfetto(observed: &Observed) -> serde_json::Result<Vec<u8>> {
    let micros = |ns: u64| ns as f64 / 1e3;
    let mut events: Vec<Value> =
        vec![json!({"ph": "M", "pid": 0, "name": "process_name", "args": {"name": "nearmiss"}})];
    for phase in &observed.phases {
        events.push(json!({
            "ph": "X", "pid": 0, "tid": 0, "name": phase.class, "ts": micros(phase.from_ns),
            "dur": micros(phase.to_ns - phase.from_ns), "args": {"evidence": phase.evidence}
        }));
    }
    for tick in &observed.timeline {
        let share = |ns: u64| ns as f64 / tick.length_ns.max(1) as f64;
        for (name, value) in [
            ("CPUs used", share(tick.cpu_ns)),
            ("CPUs used by anyone", share(tick.machine_cpu_ns)),
            ("tasks in kernel lock waits", share(tick.lock_wait_ns)),
            ("tasks in futex waits", share(tick.futex_wait_ns)),
            ("block requests in flight", tick.in_flight as f64),
            ("poll calls", tick.poll_calls as f64),
            ("switches", tick.switches as f64),
        ] {
            events.push(json!({"ph": "C", "pid": 0, "name": name, "ts": micros(tick.at_ns), "args": {"value": value}}));
        }
    }
    if let Some(profile) = &observed.profile
        && let Some(clock) = event_of(profile, "clock")
    {
        let hz = profile.events.get(clock as usize).map_or(1, |e| e.frequency_hz).max(1);
        for (pid, tid, name) in &profile.threads {
            events
                .push(json!({"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": plain(name)}}));
        }
        for sample in samples(profile, clock) {
            let Some((pid, tid, _)) = profile.threads.get(sample.thread as usize) else { continue };
            let stack = names(profile, sample);
            events.push(json!({
                "ph": "X", "pid": pid, "tid": tid, "name": plain(stack.first().copied().unwrap_or("[unattributed]")),
                "ts": micros(sample.at_ns), "dur": 1e6 / hz as f64, "args": {"stack": stack.join(" < "), "cpu": sample.cpu}
            }));
        }
    }
    serde_json::to_vec(&json!({"traceEvents": events, "displayTimeUnit": "ms"}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::observed::{Event, Frame};

    fn observed() -> Observed {
        let frame = |function: &str| Frame { function: function.into(), ..Frame::default() };
        let event = Event { name: "cpu-clock".into(), role: "clock".into(), frequency_hz: 500, ..Event::default() };
        let sample = |stack, at_ns| Sample { stack, at_ns, weight: 2_000_000, ..Sample::default() };
        Observed {
            target: "a;b".into(),
            duration_ns: 6_000_000,
            profile: Some(Profile {
                events: vec![event],
                frames: vec![frame("leaf;odd"), frame("main")],
                stacks: vec![vec![0, 1], vec![1]],
                threads: vec![(7, 8, "work er".into())],
                samples: vec![sample(0, 1), sample(1, 2), sample(0, 3)],
            }),
            ..Observed::default()
        }
    }

    #[test]
    fn folded_stacks_are_outermost_first_and_sum_to_the_samples() {
        assert_eq!(folded(observed().profile.as_ref().unwrap(), 0), "work er;main 1\nwork er;main;leaf:odd 2\n");
    }

    #[test]
    fn exports_have_every_sample() {
        let o = observed();
        let fx: Value = serde_json::from_slice(&firefox(&o).unwrap()).unwrap();
        assert_eq!(fx["threads"][0]["samples"]["length"], 3);
        assert_eq!(fx["threads"][0]["name"], "work er");
        let trace: Value = serde_json::from_slice(&perfetto(&o).unwrap()).unwrap();
        let slices = trace["traceEvents"].as_array().unwrap().iter().filter(|e| e["ph"] == "X").count();
        assert_eq!(slices, 3);
        assert!(to_pprof(&o).unwrap().starts_with(&[0x1f, 0x8b]), "gzipped");
    }
}
