//! One HTML file that needs nothing else.
//!
//! Names come from observed programs and are hostile until escaped: `maud` escapes all text and attributes, and the
//! script, which is the other page's, reads names only as text.

use super::export::outermost_first;
use super::hot::{Hot, call_sites, hottest, lines, ratios, total};
use super::text::{descriptors, missing};
use super::timeline::{distribution, timeline};
use super::words::{lock_name, of_processes, rate, short, time, waited};
use crate::function_name::folded;
use crate::html::{SCRIPT, findings, page_head};
use crate::name::{fitted, plain};
use crate::number::{bytes, fixed_percent, grouped, percent_of};
use crate::plot::flame::flame;
use crate::stacks::tree;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use nearmiss_record::finding::Findings;
use nearmiss_record::observed::{LEAST_CLASSIFIED_NS, Lock, Observed, Phase, Profile};

const MORE_STYLE: &str = "
.track { margin: 0.6rem 0; } .track svg { width: 100%; height: 64px; background: var(--panel); border: 1px solid var(--line); }
.track figcaption { font-size: 0.85rem; color: var(--quiet); }
.frames { max-height: 30rem; overflow-y: auto; }
table.wide td, table.wide th { text-align: right; padding: 0.15rem 0.6rem; font-variant-numeric: tabular-nums; vertical-align: top; width: 1%; white-space: nowrap; min-width: 0; }
table.wide td.name, table.wide th.name { text-align: left; width: auto; } table.wide td.name code { overflow-wrap: normal; }
table.wide td.words { white-space: normal; min-width: 18rem; }
table.wide caption { text-align: left; padding: 0.25rem 0.6rem; color: var(--quiet); }
";
const ROWS: usize = 40;

/// The page.
pub fn html(observed: &Observed, found: Option<&Findings>) -> String {
    let target = fitted(&observed.target, 120);
    let found = found.map(|found| ("findings", "Findings".to_owned(), findings::body(found)));
    let sections: Vec<(&str, String, Markup)> = found.into_iter().chain(sections(observed)).collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (page_head(&target, &html! {}, MORE_STYLE))
            body {
                a.skip href="#main" { "Skip to the figures" }
                header {
                    p.kicker { "nearmiss observe · everything on this page was measured" }
                    h1 { code { (target) } }
                    @if let [phase] = observed.phases.as_slice() {
                        p.sentence { (phase.class) " " span.tag { "margin " (points(phase)) " points" } }
                        p { (plain(&phase.evidence)) "." }
                    } @else if observed.duration_ns < LEAST_CLASSIFIED_NS {
                        p.sentence { "No class: shorter than " (time(LEAST_CLASSIFIED_NS)) }
                    } @else if !observed.phases.is_empty() {
                        (phases(&observed.phases))
                    }
                    dl.tiles {
                        (tile("wall time", &time(observed.duration_ns)))
                        (tile("CPU time", &time(observed.cpu_ns)))
                        (tile("of one CPU", &percent_of(observed.cpu_ns, observed.duration_ns)))
                        (tile("in lock waits", &time(observed.locks.iter().filter(|l| l.contended).map(|l| l.total_ns).sum())))
                        (tile("poll calls", &grouped(observed.polls.iter().map(|p| p.calls).sum())))
                        (tile("block I/O", &bytes(observed.io.iter().map(|i| i.bytes).sum())))
                    }
                }
                nav aria-label="Sections" {
                    ul { @for (id, title, _) in &sections { li { a href={ "#" (id) } { (title) } } } }
                }
                main #main tabindex="-1" {
                    @for (id, title, body) in &sections {
                        section #(id) aria-labelledby={ (id) "-title" } {
                            h2 #{ (id) "-title" } { (title) }
                            (body)
                        }
                    }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn points(phase: &Phase) -> String {
    format!("{:.0}", phase.margin_points)
}

fn phases(phases: &[Phase]) -> Markup {
    let share = |part: f64| fixed_percent(part, 0);
    html! { div.scroll { table.wide {
        caption { "Phases" }
        tr { th { "from" } th { "to" } th.name { "class" } th { "margin" } th { "CPU" } th { "locks" } th { "block I/O" } th.name { "why" } }
        @for p in phases {
            tr {
                td { (time(p.from_ns)) } td { (time(p.to_ns)) } td.name { strong { (p.class) } } td { (points(p)) " points" }
                td { (share(p.cpu_share)) } td { (share(p.lock_share)) } td { (share(p.io_share)) } td.name.words { (plain(&p.evidence)) }
            }
        }
    } } }
}

fn tile(name: &str, value: &str) -> Markup {
    html! { div.tile { dt { (name) } dd { (value) } } }
}

fn sections(o: &Observed) -> Vec<(&'static str, String, Markup)> {
    let mut out: Vec<(&'static str, String, Markup)> = Vec::new();
    if let Some(profile) = &o.profile {
        for (index, event) in profile.events.iter().enumerate() {
            let (id, title) = match event.role.as_str() {
                "clock" => ("time", "Where time goes".to_owned()),
                "misses" => ("misses", "Where misses go".to_owned()),
                "references" => continue,
                _ => ("events", format!("Where {} happen", plain(&event.name))),
            };
            out.push((id, title, profile_section(profile, index as u32)));
        }
    }
    if !o.timeline.is_empty() {
        out.push(("timeline", "Over time".to_owned(), timeline(o)));
    }
    if !o.locks.is_empty() {
        out.push(("locks", "Lock and futex waits".to_owned(), locks(o)));
    }
    if !o.polls.is_empty() {
        out.push(("polls", "Polls".to_owned(), polls(o)));
    }
    if !o.io.is_empty() {
        out.push(("io", "Block I/O".to_owned(), block(o)));
    }
    if !o.memory.is_empty() {
        out.push(("memory", "Pages of the kernel".to_owned(), memory(o)));
    }
    if !o.tasks.is_empty() {
        out.push(("tasks", "Tasks".to_owned(), tasks(o)));
    }
    out.push(("notes", "Notes".to_owned(), notes(o)));
    out
}

fn memory(o: &Observed) -> Markup {
    html! { table.wide {
        tr { th { "pages" } th { "calls" } th { "direct reclaims" } th { "time" } th { "max" } th { "found" } th.name { "process" } }
        @for m in o.memory.iter().take(ROWS) {
            tr {
                td { (grouped(m.pages)) } td { (grouped(m.allocations)) } td { (grouped(m.reclaims)) }
                td { (time(m.reclaim_ns)) } td { (time(m.max_ns)) } td { (grouped(m.reclaimed)) }
                td.name { (plain(&m.name)) " " (m.process) }
            }
        }
    } }
}

fn profile_section(profile: &Profile, event: u32) -> Markup {
    let (samples, _) = total(profile, event);
    let what = profile.events.get(event as usize).cloned().unwrap_or_default();
    let hot = hottest(profile, event);
    let by_line: Vec<Hot> = lines(profile, event).into_iter().filter(|h| h.name.contains(':')).collect();
    html! {
        p.quiet { (grouped(samples)) " samples of " (plain(&what.name)) ", " (what.lost) " lost" }
        (flame_of(profile, event))
        @if what.role == "misses" {
            @for r in ratios(profile).iter().take(5) {
                p { code { (plain(&r.name)) } " has " (fixed_percent(r.references, 0)) " of references, " (fixed_percent(r.misses, 0)) " of misses" }
            }
        }
        div.scroll { table.wide {
            caption { "By function" }
            tr { th { "self" } th { "with callees" } th.name { "function" } th.name { "in" } th.name { "called from" } }
            @for h in hot.iter().filter(|h| h.samples > 0).take(ROWS) {
                tr {
                    td { (percent_of(h.samples, samples)) } td { (percent_of(h.inclusive, samples)) }
                    td.name title=(plain(&h.name)) { code { (plain(&folded(&h.name))) } } td.name { (plain(short(&h.module))) }
                    td.name { @for s in call_sites(profile, event, &h.name).iter().take(2) { (plain(&s.frame.function)) " " (percent_of(s.samples, h.samples)) " " } }
                }
            }
        } }
        @if !by_line.is_empty() {
            div.scroll { table.wide {
                caption { "By source line" }
                tr { th { "self" } th.name { "line" } }
                @for h in by_line.iter().take(ROWS) {
                    tr { td { (percent_of(h.samples, samples)) } td.name { code { (plain(&h.name)) } } }
                }
            } }
        }
    }
}

fn flame_of(profile: &Profile, event: u32) -> Markup {
    let stacks = outermost_first(profile, event);
    let nodes = tree(stacks.iter().map(|frames| (frames.iter().copied(), 1)));
    let name = profile.events.get(event as usize).map_or("", |e| e.name.as_str());
    html! {
        @if stacks.is_empty() {
            p.quiet { "No samples, so no flame graph." }
        } @else {
            (flame(&nodes, "Measured", "samples", &format!("Flame graph of {}", plain(name))))
        }
    }
}

fn locks(o: &Observed) -> Markup {
    let processes = of_processes(&o.locks);
    let name = |l: &Lock| lock_name(l, processes);
    html! { div.scroll { table.wide {
        tr { th { "total" } th { "waits" } th { "average" } th { "max" } th { "min" } th { "distribution" } th.name { "lock" } th.name { "called from" } }
        @for l in o.locks.iter().take(ROWS) {
            tr {
                td { (time(l.total_ns)) } td { (grouped(l.count)) } td { (time(l.total_ns / l.count.max(1))) }
                td { (time(l.max_ns)) } td { (time(l.min_ns)) } td { (distribution(&l.log2_ns)) }
                td.name { (plain(&name(l))) @if !l.contended { " " span.tag { "waits for an event" } }
                    @if l.acquisitions > 0 { br; (percent_of(l.count, l.acquisitions)) " of " (grouped(l.acquisitions)) " acquisitions" }
                }
                td.name {
                    @if l.call_sites.is_empty() {
                        @for f in l.stack.iter().take(3) { (plain(&f.function)) br; }
                    }
                    @for (f, n) in l.call_sites.iter().take(3) { (plain(&f.function)) " " code { (plain(&f.line)) } " (" (n) ")" br; }
                }
            }
        }
    } } }
}

fn polls(o: &Observed) -> Markup {
    html! { div.scroll { table.wide {
        tr { th { "calls" } th { "calls/s" } th { "events a call" } th { "polled a call" } th { "empty" } th { "blocked a call" } th { "on CPU a call" } th { "time between" } th.name { "call, thread" } }
        @for p in o.polls.iter().take(ROWS) {
            @let calls = p.calls.max(1) as f64;
            tr {
                td { (grouped(p.calls)) } td { (format!("{:.1}", rate(p.calls, o))) }
                td { (format!("{:.2}", p.events as f64 / calls)) } td { (descriptors(p)) }
                td { (percent_of(p.empty, p.calls)) } td { (time(p.blocked_ns / (p.calls + u64::from(p.open)).max(1))) } td { (time(p.on_cpu_ns / p.calls.max(1))) }
                td { (distribution(&p.log2_interval_ns)) } td.name { (plain(&p.call)) " " (plain(&p.name)) " " (p.thread) }
            }
        }
    } } }
}

fn block(o: &Observed) -> Markup {
    html! { div.scroll { table.wide {
        tr { th { "requests" } th { "bytes" } th { "queued" } th { "in device" } th { "max" } th { "in-device distribution" } th.name { "device" } th.name { "operation" } th.name { "submitter" } }
        @for i in o.io.iter().take(ROWS) {
            tr {
                td { (grouped(i.count)) } td { (bytes(i.bytes)) } td { (time(i.queue_ns / i.count.max(1))) }
                td { (time(i.device_ns / i.count.max(1))) } td { (time(i.max_ns)) } td { (distribution(&i.log2_device_ns)) }
                td.name { (plain(&i.device)) } td.name { (plain(&i.operation)) } td.name { (plain(&i.name)) " " (i.process) }
            }
        }
    } }
    @for q in &o.queues {
        p { "Queue of " (plain(&q.device)) ": busy " (percent_of(q.busy_ns, o.duration_ns)) ", mean length " (format!("{:.2}", q.weighted_ns as f64 / o.duration_ns.max(1) as f64)) ", at most " (q.max) "." }
    } }
}

fn tasks(o: &Observed) -> Markup {
    html! { div.scroll { table.wide {
        tr { th { "on CPU" } th { "runnable" } th { "waiting" } th { "in all" } th { "switches" } th { "migrations" } th.name { "task" } th.name { "waiting for" } }
        @for t in o.tasks.iter().take(ROWS) {
            tr {
                td { (time(t.cpu_ns)) } td { (time(t.wait_ns)) } td { (time(waited(t))) } td { @if t.life_ns > 0 { (time(t.life_ns)) } @else { "–" } } td { (grouped(t.voluntary + t.involuntary)) } td { (t.migrations) }
                td.name { (plain(&t.name)) " " (t.thread) }
                td.name { @for (reason, ns, n) in t.off.iter().take(4) { (plain(reason)) " " (time(*ns)) " in " (grouped(*n)) "; " } }
            }
        }
    } } }
}

fn notes(o: &Observed) -> Markup {
    html! { ul {
        @for i in o.instruments.iter().filter(|i| i.on) {
            li { (plain(&i.name)) ": " (plain(&i.how)) }
        }
        @for (names, how, to_enable) in missing(o) {
            li { "no " (plain(&names.join(", "))) ": " (plain(how)) @if !to_enable.is_empty() { "; " code { (plain(to_enable)) } } }
        }
        @for (what, n) in &o.lost { li { "lost: " (grouped(*n)) " " (plain(what)) } }
        @for note in &o.notes { li { (plain(note)) } }
        li { "The instruments held " (bytes(o.instrument_bytes)) " of memory." }
    } }
}
