//! Evidence of remote reads: shares by thread, and the objects with their reasons.

use super::remote_accesses::RemoteAccesses;
use nearmiss_machine::attribution::{Cause, RemoteObject};
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::finding::{Evidence, EvidenceLine};
use nearmiss_record::words::{counted, grouped, percent};

/// Most threads and objects that a finding names in its lines.
const MOST_NAMED: usize = 4;
/// Most rows of a table.
const MOST_ROWS: usize = 64;
/// Threads with fewer bus reads are no evidence.
const FEW_READS: u64 = 256;

/// Returns the evidence of remote reads; `most_gain` is the share of the command's cycles that wait for what the
/// finding is about.
pub fn evidence(seen: &RemoteAccesses, about: Cause, most_gain: f64) -> Evidence {
    let mut lines = vec![EvidenceLine::new("Reads", threads_text(seen))];
    let objects: Vec<&RemoteObject> = seen.objects.iter().filter(|object| object.cause == about).collect();
    for (at, object) in objects.iter().take(MOST_NAMED).enumerate() {
        lines.push(EvidenceLine::new(if at == 0 { "Objects" } else { "" }, object_text(object)));
    }
    if objects.len() > MOST_NAMED {
        let rest = objects.len() - MOST_NAMED;
        lines.push(EvidenceLine::new("", format!("And {} more.", counted(rest as u64, "object"))));
    }
    if about == Cause::Pool {
        let share = percent(seen.handed_elsewhere);
        lines.push(EvidenceLine::new(
            "Blocks",
            format!("{share} of the blocks that were handed out again had been freed on another node."),
        ));
    }
    lines.extend(others_text(seen, about).map(|text| EvidenceLine::new("Others", text)));
    Evidence { lines, tables: vec![objects_table(seen), threads_table(seen)], most_gain }
}

/// Describes the reason in a few words, as a sentence goes on with them.
pub fn reason(cause: Cause) -> &'static str {
    match cause {
        Cause::FirstTouch => "another task touched it first",
        Cause::Elsewhere => "the kernel put it on another node than that of its first touch",
        Cause::Moved => "the task moved between nodes",
        Cause::Read => "tasks of several nodes read it",
        Cause::Written => "tasks of several nodes write it",
        Cause::Pool => "the allocator hands out blocks that another node used last",
        Cause::PageCache => "it is the contents of a file, which lie where they were read first",
        Cause::Image => "it is the file of a program or a library, which lies where it was read first",
        Cause::Kernel => "it is the kernel's own",
    }
}

fn threads_text(seen: &RemoteAccesses) -> String {
    let busy = seen.threads.iter().filter(|(_, reads, _)| *reads >= FEW_READS);
    let mut shares: Vec<(u32, f64)> =
        busy.map(|(tid, reads, remote)| (*tid, *remote as f64 / (*reads).max(1) as f64)).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let named: Vec<String> =
        shares.iter().take(MOST_NAMED).map(|(tid, share)| format!("thread {tid} {}", percent(*share))).collect();
    let all = format!("{} of the command's bus reads go to another node's memory", percent(seen.share));
    if named.is_empty() { format!("{all}.") } else { format!("{all}: {}.", named.join(", ")) }
}

fn object_text(object: &RemoteObject) -> String {
    format!(
        "`{}`: {} of its {} bus reads are remote, because {}.",
        object.name,
        grouped(object.remote),
        grouped(object.reads),
        reason(object.cause)
    )
}

/// Describes the waits for another node's memory for other reasons.
fn others_text(seen: &RemoteAccesses, about: Cause) -> Option<String> {
    let all: u64 = seen.objects.iter().map(|object| object.waits).sum();
    let others = Cause::ALL.into_iter().filter(|cause| *cause != about);
    let shares = others.map(|cause| (cause, seen.waits(cause) as f64 / all.max(1) as f64));
    let listed: Vec<String> = shares
        .filter(|(_, share)| *share >= 0.01)
        .map(|(cause, share)| format!("{} where {}", percent(share), reason(cause)))
        .collect();
    (!listed.is_empty()).then(|| format!("Shares of all waits for another node's memory: {}.", listed.join("; ")))
}

fn objects_table(seen: &RemoteAccesses) -> Table {
    let row = |object: &RemoteObject| {
        vec![
            Cell::text(&object.name),
            Cell::text(reason(object.cause)),
            Cell::Count(object.remote),
            Cell::Count(object.reads),
            Cell::Cycles(object.waits),
            Cell::text(ids(&object.first)),
            Cell::text(ids(&object.users)),
        ]
    };
    let columns = ["object", "why remote", "remote reads", "bus reads", "cycles", "first touched by", "used by"];
    table("remote reads by object", &columns, seen.objects.iter().take(MOST_ROWS).map(row).collect())
}

fn threads_table(seen: &RemoteAccesses) -> Table {
    let row = |(tid, reads, remote): &(u32, u64, u64)| {
        let share = *remote as f64 / (*reads).max(1) as f64;
        vec![Cell::text(tid.to_string()), Cell::Count(*remote), Cell::Count(*reads), Cell::Share(share)]
    };
    let columns = ["thread", "remote reads", "bus reads", "share"];
    table("remote reads by thread", &columns, seen.threads.iter().take(MOST_ROWS).map(row).collect())
}

fn ids(threads: &[u32]) -> String {
    threads.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}

fn table(title: &str, columns: &[&str], rows: Vec<Vec<Cell>>) -> Table {
    Table { title: title.to_owned(), columns: columns.iter().map(|column| (*column).to_owned()).collect(), rows }
}
