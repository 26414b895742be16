//! The house rules that `cargo metadata` can show: which crate may use which, and under which licences others' crates
//! come. Stands in for cargo-deny, which would take longer to build than everything else here.

use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// Allowed dependencies among our crates (names without `nearmiss-`). Tests may use any.
const ALLOWED: &[(&str, &[&str])] = &[
    ("record", &[]),
    ("bypass", &[]),
    ("color", &[]),
    ("pace", &[]),
    ("pairing", &[]),
    ("snapshot", &[]),
    ("usage", &[]),
    ("workload", &["record"]),
    ("symbols", &["record"]),
    ("tap", &["record", "symbols"]),
    ("observe", &["record", "symbols", "workload"]),
    ("code", &["record"]),
    ("machine", &["record", "code"]),
    ("host", &["record", "machine"]),
    ("remedy", &["record", "machine", "workload", "color", "pace", "pairing", "usage"]),
    ("diagnose", &["record", "machine", "remedy"]),
    ("verify", &["record", "remedy", "workload"]),
    ("gate", &["record"]),
    ("lab", &["record", "verify", "workload"]),
    ("report", &["record"]),
    ("webload", &["usage"]),
    ("papers", &["record", "machine", "color", "pairing", "report", "workload"]),
    ("cache-policy", &[]),
    ("accelerator", &["cache-policy", "pace", "usage"]),
    (
        "cli",
        &[
            "record", "color", "workload", "symbols", "tap", "observe", "machine", "host", "remedy", "diagnose",
            "verify", "gate", "lab", "report", "papers", "snapshot", "usage",
        ],
    ),
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

/// Our crates' names with the crates of ours that each one's library or build script uses.
fn our_edges(metadata: &Value) -> BTreeMap<String, Vec<String>> {
    let ours = |name: &str| name.strip_prefix("nearmiss-").map(str::to_owned);
    let local = packages(metadata).iter().filter(|p| p["source"].is_null());
    local
        .filter_map(|p| {
            let uses = p["dependencies"].as_array()?.iter().filter(|d| text(d, "kind") != "dev");
            Some((ours(text(p, "name"))?, uses.filter_map(|d| ours(text(d, "name"))).collect()))
        })
        .collect()
}

fn forbidden(edges: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let allowed: BTreeMap<_, _> = ALLOWED.iter().copied().collect();
    let mut wrong = Vec::new();
    for (from, uses) in edges {
        match allowed.get(from.as_str()) {
            None => wrong.push(format!("{from} is a new crate: give it a place in ARCHITECTURE.md and here")),
            Some(may) => {
                wrong.extend(uses.iter().filter(|to| !may.contains(&to.as_str())).map(|to| format!("{from} → {to}")));
            }
        }
    }
    wrong
}

#[test]
fn crates_use_only_whom_they_may() {
    let edges = our_edges(&metadata());
    assert!(edges.contains_key("cli") && edges["cli"].iter().any(|to| to == "record"), "{edges:?}");
    assert_eq!(forbidden(&edges), Vec::<String>::new());
}

#[test]
fn a_forbidden_edge_would_be_seen() {
    let edges = |from: &str, to: &str| BTreeMap::from([(from.to_owned(), vec![to.to_owned()])]);
    assert_eq!(forbidden(&edges("machine", "observe")), ["machine → observe"]);
    assert_eq!(forbidden(&edges("record", "report")), ["record → report"]);
    assert_eq!(forbidden(&edges("tools", "record")).len(), 1);
    assert!(forbidden(&edges("machine", "record")).is_empty());
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
