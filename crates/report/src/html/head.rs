//! Head of the page: what ran, the sentence that matters, the key figures, and notes for the reader.

use crate::cycles::spent;
use crate::findings::{as_sentence, gain, known};
use crate::levels::misses;
use crate::load::Report;
use crate::name::plain;
use crate::number::{counted, duration, grouped, percentage, scaled, shares_tenths, spoken_percent, tenths};
use crate::order;
use crate::sentence::sentence;
use crate::split::{self, in_kernel};
use crate::sums::discrepancies;
use crate::wall::before_the_window;
use maud::{Markup, html};

pub(super) fn header(report: &Report, command: &str) -> Markup {
    let (manifest, model) = (&report.manifest, &report.model);
    let caches: Vec<String> =
        report.levels.iter().filter_map(|l| Some(format!("{} {} {}-way", l.name, l.size?, l.ways?))).collect();
    html! {
        header {
            p.kicker { "nearmiss report" }
            h1 { code { (command) } }
            (headline(report))
            (figures(report))
            (cycles(report))
            p.ran {
                (plain(&model.machine.name)) ": " (caches.join(", ")) "; " (counted(u64::from(manifest.cpus), "CPU"))
                "; order " (order::with_bound(model.order, "what it shows of sharing is")) @if model.only_user { "; the command's user-mode references only" }
                (crate::text::policy(&model.policy))
                ". " (ended(report))
            }
            @if let Some(caution) = model.machine.caution() { p.warning { (plain(caution)) "." } }
            @if let Some(split) = split::sentence(model) { p.ran { "All CPUs, by modelled cycles: " (split) "." } }
        }
    }
}

/// The finding that gains most, where the run was diagnosed; then what its misses show.
fn headline(report: &Report) -> Markup {
    let modelled = html! { span.tag { "Modelled" } " " (marked(&plain(&sentence(report).text))) };
    let finding = report.findings.as_ref().and_then(|findings| findings.findings.first());
    html! {
        @if let Some(finding) = finding {
            p.sentence {
                span.tag { (known(finding.known)) } " " (marked(&plain(&as_sentence(&finding.symptom)))) " "
                a href="#findings" { (plain(&finding.remedy)) ": " (plain(&gain(&finding.prediction))) } "."
            }
            p { (modelled) }
        } @else {
            p.sentence { (modelled) }
        }
    }
}

/// Names in backticks as code.
pub(super) fn marked(text: &str) -> Markup {
    html! { @for (i, part) in text.split('`').enumerate() { @if i % 2 == 1 { code { (part) } } @else { (part) } } }
}

fn figures(report: &Report) -> Markup {
    let (model, totals) = (&report.model, &report.model.totals);
    let kernel = in_kernel(model);
    let tile = |value: String, label: &str, origin: &str| html! { div.tile { dt { (label) } dd { (value) } dd.origin { (origin) } } };
    html! {
        dl.tiles {
            (tile(scaled(totals.cycles), "cycles", "modelled"))
            (tile(spoken_percent(totals.stall_cycles, totals.cycles), "of them waiting", "modelled"))
            @for level in &report.levels {
                (tile(per_kilo(misses(totals, level.index), totals.instructions), &format!("{} misses per 1,000 instructions", level.name), "modelled"))
            }
            (tile(scaled(totals.bus.transactions()), "bus transactions", "modelled"))
            @if !model.only_user { (tile(spoken_percent(kernel.cycles, totals.cycles), "of the cycles in the kernel", "modelled")) }
            (tile(duration(report.manifest.window_ns), "wall time under the tap", "measured"))
        }
    }
}

fn per_kilo(misses: u64, instructions: u64) -> String {
    if instructions == 0 { scaled(misses) } else { format!("{:.2}", misses as f64 * 1000.0 / instructions as f64) }
}

fn cycles(report: &Report) -> Markup {
    let rows = spent(&report.model, &report.levels);
    let parts: Vec<u64> = rows.iter().map(|r| r.cycles).collect();
    let total = parts.iter().sum::<u64>();
    html! {
        h2 #cycles { "Where the modelled cycles went" }
        div.stack aria-hidden="true" {
            @for (i, row) in rows.iter().enumerate() { span class={ "c" (i % 8) } style={ "width:" (crate::plot::chart::pct(percentage(row.cycles, total))) } title=(row.on) {} }
        }
        ul.legend {
            @for (i, (row, share)) in rows.iter().zip(shares_tenths(&parts)).enumerate() {
                li { span.swatch.{ "c" (i % 8) } {} (row.on) " " b { (tenths(row.cycles, share)) } " " span.quiet { (scaled(row.cycles)) @if let Some(range) = row.range { ", " (range.words()) " with what lay between the parts" } } }
            }
        }
    }
}

fn ended(report: &Report) -> String {
    let sentence = |clause: String| {
        let mut letters = clause.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).chain(['.', ' ']).collect::<String>()
    };
    let text: String = crate::end::clauses(&report.manifest).into_iter().map(sentence).collect();
    text.trim_end().to_owned()
}

pub(super) fn notes(report: &Report) -> Markup {
    let (manifest, model) = (&report.manifest, &report.model);
    let filter = &manifest.filter;
    let filter_text = match filter.index_bits {
        0 => format!("one line of {} bytes", 1u64 << filter.line_log2.min(16)),
        bits => format!(
            "{} sets of {}-byte lines, indexed from bit {}",
            grouped(1 << bits.min(40)),
            1u64 << filter.line_log2.min(16),
            filter.index_low
        ),
    };
    let facts = [
        ("Command", manifest.command.join(" ")),
        ("Directory", manifest.cwd.clone()),
        ("Started", manifest.started.clone()),
        ("Machine modelled", format!("{}: {}", model.machine.name, model.machine.title)),
        (
            "Guest",
            format!("{}, kernel {}, {}", manifest.emulator, manifest.kernel, counted(u64::from(manifest.cpus), "CPU")),
        ),
        ("Clock of the guest", manifest.clock.clone()),
        (
            "Filter of the tap",
            format!(
                "{filter_text}{}; fetches {}, calling contexts {}",
                if filter.first_level.is_some() { ", the machine's first level behind them" } else { "" },
                recorded(filter.fetches),
                recorded(filter.contexts)
            ),
        ),
        ("Records kept", grouped(manifest.records)),
        (
            "Wall time (measured)",
            format!("{} in the window; {}", duration(manifest.window_ns), before_the_window(manifest)),
        ),
        (
            "Beside the totals (modelled)",
            format!(
                "{} cycles of other tasks, {} idle, {} in timer ticks",
                scaled(model.others.cycles),
                scaled(model.idle.cycles),
                scaled(model.ticks.cycles)
            ),
        ),
        ("nearmiss", manifest.nearmiss.clone()),
    ];
    let sums = discrepancies(model);
    html! {
        section #notes aria-labelledby="notes-title" {
            h2 #notes-title { "Notes" }
            @if !sums.is_empty() { ul.warning { @for s in &sums { li { (plain(s)) } } } }
            ul {
                @for note in manifest.notes.iter().chain(&model.notes) { li { (plain(note)) } }
                li { "Cycles, misses and transactions are modelled; wall times are measured, under the tap, which slows the program down." }
                li { "Every table's last row holds what is not shown, so that columns add up to the whole." }
            }
            dl.facts { @for (name, value) in facts { dt { (name) } dd { (plain(&value)) } } }
        }
    }
}

fn recorded(yes: bool) -> &'static str {
    if yes { "recorded" } else { "not recorded" }
}
