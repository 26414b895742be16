//! The house rules that `cargo metadata` can show: which crate may use which, and under which licences others' crates
//! come. Stands in for cargo-deny, which would take longer to build than everything else here.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Dependencies among our crates (names without `nearmiss-`), tests aside. Cargo's and those of ARCHITECTURE.md are
/// exactly these.
const EDGES: &[(&str, &[&str])] = &[
    ("record", &[]),
    ("bypass", &[]),
    ("color", &[]),
    ("pace", &[]),
    ("pairing", &[]),
    ("usage", &[]),
    ("workload", &[]),
    ("symbols", &["record"]),
    ("snapshot", &["symbols"]),
    ("tap", &["record", "symbols"]),
    ("observe", &["record", "workload", "symbols"]),
    ("code", &["record"]),
    ("machine", &["record", "code"]),
    ("host", &["record", "machine"]),
    ("report", &["record", "symbols", "gate"]),
    ("analysis", &["record", "workload", "symbols", "tap", "machine"]),
    ("remedies", &["record", "pace", "pairing", "usage", "workload", "machine", "analysis"]),
    ("verify", &["record", "workload", "analysis"]),
    ("gate", &["record"]),
    ("lab", &["record", "workload", "verify"]),
    (
        "cli",
        &[
            "record", "snapshot", "usage", "workload", "tap", "observe", "machine", "host", "report", "analysis",
            "remedies", "verify", "gate", "lab",
        ],
    ),
    ("papers", &["record", "color", "pairing", "usage", "workload", "machine", "report"]),
    ("cache-policy", &[]),
    ("webload", &["usage"]),
    ("accelerator", &["pace", "usage", "cache-policy"]),
];

/// Licences that may go into a binary under MIT OR Apache-2.0.
const LICENCES: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "MIT-0",
    "CC0-1.0",
    "Unlicense",
    "Unicode-3.0",
    "BSL-1.0",
    "MPL-2.0",
    // Applies file by file, like MPL-2.0; no file of such a crate is changed here.
    "CDDL-1.0",
];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn packages(metadata: &Value) -> &[Value] {
    metadata["packages"].as_array().expect("packages")
}

/// Crates of ours with the crates of ours that each one uses.
type Edges = BTreeMap<String, BTreeSet<String>>;

/// Returns the edges that Cargo has, tests aside.
fn cargos(metadata: &Value) -> Edges {
    let ours = |name: &str| name.strip_prefix("nearmiss-").map(str::to_owned);
    let local = packages(metadata).iter().filter(|p| p["source"].is_null());
    local
        .filter_map(|p| {
            let uses = p["dependencies"].as_array()?.iter().filter(|d| text(d, "kind") != "dev");
            Some((ours(text(p, "name"))?, uses.filter_map(|d| ours(text(d, "name"))).collect()))
        })
        .collect()
}

/// Returns the edges that the table of rooms in ARCHITECTURE.md has.
fn documented(page: &str) -> Edges {
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [room, .., uses] = cells[..] else { return None };
        let path = room.strip_prefix('`')?.strip_suffix('`')?;
        let is_rust = ["crates/", "libs/", "apps/", "research/"].iter().any(|folder| path.starts_with(folder));
        let uses = uses.split(", ").filter(|name| *name != "–").map(str::to_owned).collect();
        is_rust.then(|| (path.rsplit('/').next().unwrap_or(path).to_owned(), uses))
    });
    rows.collect()
}

fn listed() -> Edges {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    EDGES.iter().map(|(from, uses)| ((*from).to_owned(), owned(uses))).collect()
}

/// Edges that only one of two lists has, each as `from → to`.
fn differences(these: &Edges, others: &Edges) -> Vec<String> {
    let pairs = |edges: &Edges| -> BTreeSet<String> {
        let alone = edges.keys().map(|from| format!("{from} →"));
        let uses = edges.iter().flat_map(|(from, uses)| uses.iter().map(move |to| format!("{from} → {to}")));
        alone.chain(uses).collect()
    };
    pairs(these).symmetric_difference(&pairs(others)).cloned().collect()
}

#[test]
fn edges_are_those_of_the_list_and_of_the_architecture() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ARCHITECTURE.md")).expect("a page");
    assert_eq!(differences(&cargos(&metadata()), &listed()), Vec::<String>::new(), "Cargo against this list");
    assert_eq!(differences(&documented(&page), &listed()), Vec::<String>::new(), "ARCHITECTURE.md against this list");
}

#[test]
fn any_other_edge_would_be_seen() {
    let edges = |from: &str, to: &[&str]| -> Edges {
        BTreeMap::from([(from.to_owned(), to.iter().map(|name| (*name).to_owned()).collect())])
    };
    assert_eq!(differences(&edges("machine", &["observe"]), &edges("machine", &[])), ["machine → observe"]);
    assert_eq!(differences(&edges("machine", &[]), &edges("machine", &["record"])), ["machine → record"]);
    assert_eq!(differences(&edges("tools", &[]), &edges("lab", &[])), ["lab →", "tools →"]);
    let row = "| `crates/lab` | matrices | record, verify |\n| `native/tap` | C | `native/include` |";
    assert_eq!(documented(row), edges("lab", &["record", "verify"]));
    assert_eq!(documented("| `libs/pace` | rules | – |"), edges("pace", &[]));
}

/// `A OR B` needs one allowed, `A AND B` both; `/` is an old way to write OR.
fn allowed_licence(expression: &str) -> bool {
    let plain = expression.replace(['(', ')'], " ").replace('/', " OR ");
    plain.split(" AND ").all(|part| part.split(" OR ").any(|name| LICENCES.contains(&name.trim())))
}

#[test]
fn others_crates_come_from_a_registry_under_licences_that_fit() {
    let metadata = metadata();
    let others: Vec<_> = packages(&metadata).iter().filter(|p| !p["source"].is_null()).collect();
    assert!(others.len() > 20, "{} crates", others.len());
    let wrong: Vec<_> = others
        .iter()
        .filter(|p| !allowed_licence(text(p, "license")) || !text(p, "source").starts_with("registry+"))
        .map(|p| format!("{} {}: {} from {}", text(p, "name"), text(p, "version"), p["license"], p["source"]))
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn licence_expressions_are_read() {
    assert!(allowed_licence("MIT/Apache-2.0") && allowed_licence("(MIT OR GPL-3.0-only) AND Unicode-3.0"));
    assert!(!allowed_licence("GPL-3.0-only") && !allowed_licence("MIT AND GPL-3.0-only") && !allowed_licence(""));
}
