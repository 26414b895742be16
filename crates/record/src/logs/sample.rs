//! Samples with the names of their places.

use super::row::{Sound, rows};
use crate::observed::{Profile, Sample};

rows! {
    /// One sample with its names.
    NamedSample in "samples.parquet" as "nearmiss/samples/1" {
        /// Instant of the sample.
        at_ns: u64,
        /// Name of the event, as in `perf list`.
        event: String,
        /// Events that the sample stands for (nanoseconds for clocks).
        weight: u64,
        /// CPU on which the sample was taken.
        cpu: u32,
        /// Process.
        process: u32,
        /// Thread.
        thread: u32,
        /// Name of the thread.
        name: String,
        /// Function that the sample fell on.
        function: String,
        /// Path of the function's file, or `[kernel]`.
        module: String,
        /// `file:line`, or empty.
        line: String,
        /// The sample fell on kernel code.
        kernel: bool,
        /// Functions of the call stack, outermost first, joined by `;`.
        stack: String,
    }
}

impl Sound for NamedSample {}

impl NamedSample {
    /// The samples of a profile, oldest first.
    pub fn rows(profile: &Profile) -> impl Iterator<Item = NamedSample> {
        let stacks: Vec<String> = profile.stacks.iter().map(|stack| folded(profile, stack)).collect();
        profile.samples.iter().map(move |sample| named(profile, sample, &stacks))
    }
}

fn folded(profile: &Profile, stack: &[u32]) -> String {
    let frames = stack.iter().rev().filter_map(|index| profile.frames.get(*index as usize));
    frames.map(|frame| frame.function.as_str()).collect::<Vec<_>>().join(";")
}

fn named(profile: &Profile, sample: &Sample, stacks: &[String]) -> NamedSample {
    let innermost = profile.stacks.get(sample.stack as usize).and_then(|stack| stack.first());
    let frame = innermost.and_then(|index| profile.frames.get(*index as usize)).cloned().unwrap_or_default();
    let (process, thread, name) = profile.threads.get(sample.thread as usize).cloned().unwrap_or_default();
    NamedSample {
        at_ns: sample.at_ns,
        event: profile.events.get(sample.event as usize).map(|event| event.name.clone()).unwrap_or_default(),
        weight: sample.weight,
        cpu: sample.cpu,
        process: process.max(0).cast_unsigned(),
        thread: thread.max(0).cast_unsigned(),
        name,
        function: frame.function,
        module: frame.module,
        line: frame.line,
        kernel: frame.kernel,
        stack: stacks.get(sample.stack as usize).cloned().unwrap_or_default(),
    }
}
