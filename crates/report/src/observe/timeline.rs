//! The time line and the distributions, as SVG.

use super::words::time;
use maud::{Markup, html};
use nearmiss_record::observed::{Observed, Tick};

const WIDTH: f64 = 1000.0;
const TRACK: f64 = 64.0;

/// One track of the time line.
struct Track {
    name: &'static str,
    class: &'static str,
    unit: &'static str,
    value: fn(&Tick) -> f64,
}

fn share(ns: u64, tick: &Tick) -> f64 {
    ns as f64 / tick.length_ns.max(1) as f64
}

const TRACKS: [Track; 6] = [
    Track { name: "CPUs used by the target", class: "user", unit: "", value: |t| share(t.cpu_ns, t) },
    Track { name: "CPUs used by anyone", class: "user", unit: "", value: |t| share(t.machine_cpu_ns, t) },
    Track { name: "tasks waiting for kernel locks", class: "kernel", unit: "", value: |t| share(t.lock_wait_ns, t) },
    Track { name: "tasks waiting for futexes", class: "kernel", unit: "", value: |t| share(t.futex_wait_ns, t) },
    Track { name: "block requests in flight", class: "kernel", unit: "", value: |t| t.in_flight as f64 },
    Track {
        name: "poll calls a second",
        class: "user",
        unit: "/s",
        value: |t| t.poll_calls as f64 * 1e9 / t.length_ns.max(1) as f64,
    },
];

/// CPUs, lock waits, queue lengths and polls over time; tracks where nothing happened are left out.
pub fn timeline(observed: &Observed) -> Markup {
    let ticks = &observed.timeline;
    let end = observed.duration_ns.max(1) as f64;
    html! {
        @for track in &TRACKS {
            @let highest = ticks.iter().map(track.value).fold(0.0, f64::max);
            @if highest > 0.0 {
                figure.track {
                    figcaption { (track.name) ", at most " (number(highest)) (track.unit) }
                    svg viewBox={ "0 0 " (WIDTH) " " (TRACK) } role="img" preserveAspectRatio="none"
                        aria-label={ (track.name) " over " (time(observed.duration_ns)) ", at most " (number(highest)) } {
                        @for tick in ticks {
                            @let height = (track.value)(tick) / highest * TRACK;
                            @let width = tick.length_ns as f64 / end * WIDTH;
                            @let x = tick.at_ns.saturating_sub(tick.length_ns) as f64 / end * WIDTH;
                            rect.(track.class) x=(format!("{x:.2}")) y=(format!("{:.2}", TRACK - height))
                                width=(format!("{width:.2}")) height=(format!("{height:.2}")) {
                                title { (time(tick.at_ns)) ": " (number((track.value)(tick))) (track.unit) }
                            }
                        }
                    }
                }
            }
        }
        @if observed.phases.len() > 1 {
            p.quiet { "Phases: " @for p in &observed.phases { (time(p.from_ns)) "–" (time(p.to_ns)) " " (p.class) "; " } }
        }
        p.quiet { "From 0 to " (time(observed.duration_ns)) "." }
    }
}

fn number(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// A log₂ histogram of times, as a small bar chart.
pub fn distribution(slots: &[u32]) -> Markup {
    let first = slots.iter().position(|n| *n > 0).unwrap_or(0);
    let shown: Vec<(usize, u32)> = slots.iter().copied().enumerate().skip(first).collect();
    let highest = shown.iter().map(|(_, n)| *n).max().unwrap_or(0).max(1);
    let label =
        shown.iter().filter(|(_, n)| *n > 0).map(|(i, n)| format!("{n} below {}", time(2u64 << i))).collect::<Vec<_>>();
    html! {
        svg.distribution width=(shown.len() * 9) height="28" role="img" aria-label=(label.join(", ")) {
            @for (place, (slot, n)) in shown.iter().enumerate() {
                @let height = f64::from(*n) / f64::from(highest) * 26.0;
                rect.user x=(place * 9) y=(format!("{:.1}", 28.0 - height)) width="8" height=(format!("{height:.1}")) {
                    title { (n) " from " (time(1u64 << slot)) " to " (time(2u64 << slot)) }
                }
            }
        }
    }
}
