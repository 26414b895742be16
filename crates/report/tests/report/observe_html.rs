//! The page of an observed run: harmless with any names, and in a browser without an error or an overflow, in a wide
//! and in a narrow window.

#![allow(clippy::unwrap_used)]

use crate::support::chromium::visit;
use nearmiss_record::observed::{
    BlockIo, Event, Frame, Instrument, Lock, Observed, Phase, Poll, Profile, Queue, Sample, Task, Tick,
};
use nearmiss_report::observe::html;

const HOSTILE: &str =
    "</code></style></iframe><script>document.title='owned'</script>\" onmouseover=\"owned()' \u{202e}<!--";

/// An observation with something in every section, all its names `name`.
fn observed(name: &str) -> Observed {
    let text = name.to_owned();
    let frame = |n: u32| Frame {
        function: format!("{name}{n}"),
        module: text.clone(),
        line: format!("{name}.c:{n}"),
        ..Frame::default()
    };
    let event = |role: &str| Event { name: text.clone(), role: role.to_owned(), frequency_hz: 499, ..Event::default() };
    let sample = |at: u64| Sample {
        at_ns: at * 1_000_000,
        event: (at % 3) as u32,
        stack: (at % 4) as u32,
        weight: 1,
        ..Sample::default()
    };
    let phase = |from: u64, class: &str| Phase {
        from_ns: from,
        to_ns: from + 500_000_000,
        class: class.to_owned(),
        evidence: "a reason that is long enough to be broken into several lines of the page, wherever it is shown"
            .to_owned(),
        ..Phase::default()
    };
    Observed {
        target: text.clone(),
        duration_ns: 1_000_000_000,
        cpus: 2,
        cpu_ns: 900_000_000,
        instruments: vec![Instrument { name: text.clone(), how: text.clone(), to_enable: text.clone(), on: false }],
        profile: Some(Profile {
            events: vec![event("clock"), event("misses"), event("references")],
            frames: (0..30).map(frame).collect(),
            stacks: (0..4).map(|i| (i..i + 20).collect()).collect(),
            threads: vec![(1, 1, text.clone())],
            samples: (0..200).map(sample).collect(),
        }),
        locks: vec![Lock {
            kind: text.clone(),
            name: text.clone(),
            count: 3,
            log2_ns: vec![0, 1, 2],
            stack: vec![frame(1)],
            ..Lock::default()
        }],
        polls: vec![Poll {
            call: text.clone(),
            name: text.clone(),
            calls: 2,
            log2_interval_ns: vec![1, 1],
            ..Poll::default()
        }],
        io: vec![BlockIo {
            device: text.clone(),
            name: text.clone(),
            operation: text.clone(),
            count: 1,
            ..BlockIo::default()
        }],
        queues: vec![Queue { device: text.clone(), ..Queue::default() }],
        tasks: vec![Task { name: text.clone(), off: vec![(text.clone(), 1, 1)], ..Task::default() }],
        timeline: (1..=10)
            .map(|i| Tick {
                at_ns: i * 100_000_000,
                length_ns: 100_000_000,
                cpu_ns: i * 5_000_000,
                poll_calls: i,
                ..Tick::default()
            })
            .collect(),
        phases: vec![phase(0, "CPU-busy"), phase(500_000_000, "lock-contended")],
        notes: vec![text],
        ..Observed::default()
    }
}

#[test]
fn no_name_becomes_markup() {
    let page = html(&observed(HOSTILE), None);
    assert_eq!(page.matches("</style>").count(), 1, "the page's own");
    assert_eq!(page.matches("<script").count(), 1, "the page's own");
    for harm in ["<!--", "\u{202e}", "\" onmouseover=\"owned()"] {
        let at = page.find(harm).map(|at| page[..at].chars().rev().take(200).collect::<String>());
        assert_eq!(at.map(|t| t.chars().rev().collect::<String>()), None, "{harm:?} after this");
    }
    assert!(!page.contains(" src=") && page.contains("default-src 'none'"));
}

/// Leaves in the title what a reader would complain about.
const READER: &str = r##"<script>
const seen = [];
const root = document.documentElement;
if (root.scrollWidth > innerWidth) seen.push("wider than the window: " + root.scrollWidth);
for (const cell of document.querySelectorAll("td, th, .tile dd, .tile dt"))
  if (cell.scrollWidth > cell.clientWidth + 1) seen.push("cut off: " + cell.textContent);
const graphs = [...document.querySelectorAll("[data-icicle]")];
seen.push(graphs.length + " flame graphs, " + document.querySelectorAll("figure.track").length + " tracks");
document.title = seen.join("|");
</script>"##;

#[test]
fn a_browser_has_nothing_to_complain_about() {
    for (name, width) in [("plain_name", 1400), ("plain_name", 420), (HOSTILE, 1400)] {
        let page = html(&observed(name), None).replace("</body>", &format!("{READER}</body>"));
        let Some(visit) = visit(&page, width) else { return };
        assert!(visit.console.is_empty(), "{:#?}", visit.console);
        let title = visit.dom.split("<title>").nth(1).and_then(|t| t.split("</title>").next()).unwrap_or_default();
        if name != HOSTILE {
            assert_eq!(title, "2 flame graphs, 2 tracks", "in {width} pixels");
        }
        assert!(!title.contains("owned"), "{title}");
    }
}
