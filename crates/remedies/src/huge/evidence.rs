//! Evidence of walks and first touches, and of the memory that large pages take.

use super::walks_and_touches::{PAGE_LOG2, WalksAndTouches};
use nearmiss_machine::attribution::{Reach, WalkedObject};
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::finding::{Evidence, EvidenceLine};
use nearmiss_record::words::{bytes, counted, grouped, percent};

/// Most objects that a finding names in its lines.
const MOST_NAMED: usize = 3;
/// Most rows of a table.
const MOST_ROWS: usize = 64;

/// Returns the evidence of walks and first touches. `reach`: the memory that the remedy would put into large pages.
pub fn evidence(seen: &WalksAndTouches, reach: &Reach) -> Evidence {
    let objects = seen.objects().iter().take(MOST_NAMED).filter(|object| object.walks > 0);
    let named = objects
        .enumerate()
        .map(|(at, object)| EvidenceLine::new(if at == 0 { "Objects" } else { "" }, text_of(seen, object)));
    let lines = [EvidenceLine::new("Walks", walks(seen))].into_iter().chain(named);
    let lines = lines.chain(first_touches(seen)).chain([EvidenceLine::new("Memory", memory(reach))]);
    Evidence { lines: lines.collect(), tables: vec![objects_table(seen)], most_gain: seen.most_gain() }
}

fn walks(seen: &WalksAndTouches) -> String {
    let walks = &seen.walks;
    let others = match walks.other_walks {
        0 => String::new(),
        others => format!(
            " Another {} lead to files, stacks and ends of mappings, which stay as they are.",
            counted(others, "walk")
        ),
    };
    format!(
        "{} of data missed the first level of translation, {} walked the page table to a page of 4 KiB of this \
         memory.{others}",
        counted(walks.first_misses, "look-up"),
        grouped(walks.walks)
    )
}

fn text_of(seen: &WalksAndTouches, object: &WalkedObject) -> String {
    format!(
        "`{}`: {} of the walks, to {} in {}.",
        object.name,
        percent(object.walks as f64 / seen.walks.walks.max(1) as f64),
        bytes(object.reach.touched_bytes()),
        counted(object.reach.pages, "page")
    )
}

fn first_touches(seen: &WalksAndTouches) -> Option<EvidenceLine> {
    let all = &seen.walks.all;
    let text = format!(
        "{} were touched for the first time, each with a page fault of its own; large pages take one for 2 MiB, and \
         clear all of it.",
        counted(all.first_touches, "page")
    );
    (all.first_touches > 0).then(|| EvidenceLine::new("Faults", text))
}

/// Describes what large pages take beside what the recording touched.
fn memory(reach: &Reach) -> String {
    let (large, touched) = (reach.large_bytes(), reach.touched_bytes());
    let wasted = match large.saturating_sub(touched) >> PAGE_LOG2 {
        0 => "all of which the recording touched".to_owned(),
        pages => format!("of which the recording did not touch {}", bytes(pages << PAGE_LOG2)),
    };
    format!("{} of 2 MiB: {}, {wasted}.", counted(reach.blocks, "page"), bytes(large))
}

fn objects_table(seen: &WalksAndTouches) -> Table {
    let row = |(at, object): (usize, &WalkedObject)| {
        vec![
            Cell::text(format!("{}: {}", at + 1, object.name)),
            Cell::text(object.site.as_ref().map_or(String::new(), ToString::to_string)),
            Cell::Count(object.first_misses),
            Cell::Count(object.walks),
            Cell::Count(object.reach.first_touches),
            Cell::Bytes(object.reach.touched_bytes()),
            Cell::Bytes(object.reach.large_bytes()),
        ]
    };
    let columns = ["object", "site", "first-level misses", "walks", "first touches", "touched", "in large pages"];
    Table {
        title: "walks by object".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: seen.objects().iter().take(MOST_ROWS).enumerate().map(row).collect(),
    }
}
