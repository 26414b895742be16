//! Evidence for a subject: its lines, their tenants, who uses which bytes from where.

use super::subject::Subject;
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::finding::{Evidence, EvidenceLine};
use nearmiss_record::model::{SharedLineRow, Tenant};
use nearmiss_record::words::{bytes, counted, grouped, percent};

/// Most lines, tenants of a line, and threads of a tenant that a finding lists.
const MOST_LINES: usize = 3;
const MOST_TENANTS: usize = 6;
const MOST_THREADS: usize = 4;
/// Largest thread id of Linux.
const MOST_THREAD_ID: u32 = 1 << 22;
/// Most tenants of the table.
const MOST_ROWS: usize = 64;

/// Returns the evidence for a subject; `most_gain` is the share of the command's cycles that wait.
pub fn evidence(subject: &Subject, most_gain: f64) -> Evidence {
    let mut lines = Vec::new();
    let rows = subject.lines_by_place();
    for row in rows.iter().take(MOST_LINES) {
        lines.push(EvidenceLine::new("Line", line_text(row)));
        for (at, tenant) in row.tenants.iter().take(MOST_TENANTS).enumerate() {
            lines.push(EvidenceLine::new(if at == 0 { "Tenants" } else { "" }, tenant_text(tenant)));
        }
        let more = row.tenants.len().saturating_sub(MOST_TENANTS);
        if more > 0 {
            lines.push(EvidenceLine::new("", format!("And {} more.", counted(more as u64, "tenant"))));
        }
    }
    let rest = rows.len().saturating_sub(MOST_LINES);
    if rest > 0 {
        lines.push(EvidenceLine::new("Line", format!("And {} more.", counted(rest as u64, "line"))));
    }
    lines.push(EvidenceLine::new(
        "Cycles",
        format!("{} of the command's modelled cycles wait for these lines.", percent(most_gain)),
    ));
    Evidence { lines, tables: vec![lines_table(subject), tenants_table(subject)], most_gain }
}

/// `` `counters`+0x8 ``.
pub fn place(tenant: &Tenant) -> String {
    if tenant.offset == 0 {
        format!("`{}`", tenant.object)
    } else {
        format!("`{}`+{:#x}", tenant.object, tenant.offset)
    }
}

fn line_text(row: &SharedLineRow) -> String {
    let first = row.tenants.first().map_or_else(|| format!("`{}`", row.object), place);
    format!(
        "Another CPU took the line of {first} before {} misses on it; after {} of them the CPU used nothing that another one had written.",
        grouped(row.misses()),
        grouped(row.needless)
    )
}

fn tenant_text(tenant: &Tenant) -> String {
    let uses = [("written", &tenant.writers, &tenant.written_at), ("read", &tenant.readers, &tenant.read_at)];
    let uses: Vec<String> = uses
        .iter()
        .filter(|(_, threads, _)| !threads.is_empty())
        .map(|(what, users, sites)| {
            let at = sites.first().map_or(String::new(), |site| format!(" at {site}"));
            format!("{what} by {}{at}", threads(users))
        })
        .collect();
    format!("{}, {}: {}.", place(tenant), bytes(tenant.bytes.into()), uses.join(", "))
}

/// `thread 104`, `threads 104 and 105`, `9 threads`.
pub fn threads(users: &[u32]) -> String {
    // Numbers beyond the kernel's are of threads that were not distinguished.
    let (named, others): (Vec<u32>, Vec<u32>) = users.iter().partition(|user| **user <= MOST_THREAD_ID);
    let text = match named.as_slice() {
        [one] => format!("thread {one}"),
        [first @ .., last] if named.len() <= MOST_THREADS => {
            let first: Vec<String> = first.iter().map(u32::to_string).collect();
            format!("threads {} and {last}", first.join(", "))
        }
        _ => counted(named.len() as u64, "thread"),
    };
    if others.is_empty() { text } else { format!("{text} and others") }
}

fn table(title: &str, columns: &[&str], rows: Vec<Vec<Cell>>) -> Table {
    Table { title: title.to_owned(), columns: columns.iter().map(|column| (*column).to_owned()).collect(), rows }
}

fn lines_table(subject: &Subject) -> Table {
    let row = |(number, row): (usize, &SharedLineRow)| {
        vec![
            Cell::Count(number as u64),
            Cell::text(&row.object),
            Cell::Count(row.true_sharing),
            Cell::Count(row.false_sharing),
            Cell::Count(row.needless),
            Cell::Cycles(row.stall_cycles),
        ]
    };
    let columns = ["line", "first miss at", "true sharing", "false sharing", "needless", "cycles"];
    table("shared lines", &columns, subject.lines.iter().enumerate().take(MOST_ROWS).map(row).collect())
}

fn tenants_table(subject: &Subject) -> Table {
    let lines = subject.lines.iter().enumerate();
    let tenants = lines.flat_map(|(number, line)| line.tenants.iter().map(move |tenant| (number, tenant)));
    let ids = |threads: &[u32]| threads.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let row = |(number, tenant): (usize, &Tenant)| {
        vec![
            Cell::Count(number as u64),
            Cell::text(&tenant.object),
            Cell::Bytes(tenant.offset),
            Cell::Bytes(tenant.bytes.into()),
            Cell::Bytes(tenant.object_bytes),
            Cell::text(ids(&tenant.writers)),
            Cell::text(ids(&tenant.readers)),
            Cell::text(tenant.written_at.join("; ")),
            Cell::text(tenant.read_at.join("; ")),
        ]
    };
    let columns = ["line", "object", "offset", "bytes", "of", "written by", "read by", "written at", "read at"];
    table("tenants", &columns, tenants.take(MOST_ROWS).map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_is_named_with_its_users_and_their_code() {
        let tenant = Tenant {
            object: "counters".into(),
            offset: 8,
            bytes: 8,
            writers: vec![105],
            readers: vec![100, 105],
            written_at: vec!["a.c:22 count".into()],
            ..Tenant::default()
        };
        assert_eq!(
            tenant_text(&tenant),
            "`counters`+0x8, 8 B: written by thread 105 at a.c:22 count, read by threads 100 and 105."
        );
        assert_eq!(threads(&[1, 2, 3, 4, 5]), "5 threads");
        assert_eq!(threads(&[7, u32::MAX - 64]), "thread 7 and others");
    }
}
