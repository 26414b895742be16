//! The house rules that the text of our sources can show: short files, nothing left open, unsafe code explained.

use std::fs;
use std::path::{Path, PathBuf};

/// One idea a file.
const MOST_LINES: usize = 500;
const OURS: &[&str] = &["crates", "libs", "native", "apps", "subjects", "scripts", "research"];
const KINDS: &[&str] = &["rs", "c", "h", "sh", "py"];
/// Folders with code that the rule of words holds for, its tests included.
const WORDED: &[&str] =
    &["crates", "libs", "native", "apps", "subjects", "research", "experiments", "fuzz", "examples"];
/// Verbs of talk and two pronouns, as beginnings with their endings: a program returns, reports, requests or contains.
const TALK: [(&str, &[&str]); 6] = [
    ("t", &["ell", "ells", "old", "elling"]),
    ("s", &["ay", "ays", "aid", "aying"]),
    ("a", &["sk", "sks", "sked", "sking"]),
    ("h", &["ear", "ears", "eard", "earing"]),
    ("m", &["eet", "eets", "et", "eeting"]),
    ("w", &["hose", "hatever"]),
];
/// Words of [`TALK`] in a thousand lines: kept names of fields, flags and foreign calls. The bound may only fall.
const MOST_TALK: f64 = 0.3;

/// Help is wrapped behind this column.
const HELP_COLUMNS: usize = 100;

/// Words that stand for a thing named elsewhere.
const PRONOUNS: [&str; 8] = ["It", "Its", "They", "Their", "Them", "These", "Those", "That"];

struct Source {
    path: String,
    text: String,
}

/// Our sources; tests, fixtures and what others wrote are not held to all of this.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for directory in OURS {
        collect(&root.join(directory), &mut files);
    }
    files.sort();
    let named = files.into_iter().map(|path| Source {
        text: fs::read_to_string(&path).expect("sources are text"),
        path: path.strip_prefix(&root).unwrap_or(&path).display().to_string(),
    });
    named.collect()
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if !matches!(name.as_str(), "tests" | "fixtures" | "vendor" | "target" | "snapshots") {
                collect(&path, files);
            }
        } else if name != "tests.rs" && path.extension().is_some_and(|e| KINDS.iter().any(|k| e == *k)) {
            files.push(path);
        }
    }
}

fn too_long(source: &Source) -> Option<String> {
    let lines = source.text.lines().count();
    (lines > MOST_LINES).then(|| format!("{}: {lines} lines", source.path))
}

/// Lines with a note that something is still to be done.
fn left_open(source: &Source) -> Vec<String> {
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    let open =
        source.text.lines().enumerate().filter(|(_, line)| {
            line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| words.contains(&word))
        });
    open.map(|(i, line)| format!("{}:{}: {}", source.path, i + 1, line.trim())).collect()
}

/// Unsafe blocks and impls without a `SAFETY:` comment right above (a statement or an item may begin in between).
fn unexplained(source: &Source) -> Vec<String> {
    if !source.path.ends_with(".rs") {
        return Vec::new();
    }
    let lines: Vec<_> = source.text.lines().collect();
    let is_unsafe = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        [concat!("unsafe", " {"), concat!("unsafe", " impl")].iter().any(|word| code.contains(word))
    };
    let explained = |i: usize| lines[i.saturating_sub(8)..=i].iter().any(|line| line.contains("SAFETY:"));
    (0..lines.len())
        .filter(|&i| is_unsafe(lines[i]) && !explained(i))
        .map(|i| format!("{}:{}: {}", source.path, i + 1, lines[i].trim()))
        .collect()
}

#[test]
fn files_are_short() {
    let sources = sources();
    assert!(sources.len() > 30, "{} sources found", sources.len());
    assert_eq!(sources.iter().filter_map(too_long).collect::<Vec<_>>(), Vec::<String>::new());
}

/// A module with parts is `name/mod.rs`: its file lies among its parts.
#[test]
fn a_module_with_parts_lies_among_them() {
    let sources = sources();
    let parts = |source: &&Source| {
        let folder = source.path.strip_suffix(".rs").map(|folder| format!("{folder}/")).unwrap_or_default();
        let is_part = |other: &Source| other.path.starts_with(&folder) && other.path.ends_with(".rs");
        !folder.is_empty() && sources.iter().any(is_part)
    };
    let beside: Vec<&str> = sources.iter().filter(parts).map(|source| source.path.as_str()).collect();
    assert_eq!(beside, Vec::<&str>::new());
}

#[test]
fn nothing_is_left_open() {
    assert_eq!(sources().iter().flat_map(left_open).collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn unsafe_code_is_explained() {
    assert_eq!(sources().iter().flat_map(unexplained).collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn breaches_would_be_seen() {
    let source = |text: &str| Source { path: "a.rs".into(), text: text.into() };
    assert!(too_long(&source(&"line\n".repeat(501))).is_some() && too_long(&source(&"line\n".repeat(500))).is_none());
    assert_eq!(left_open(&source(concat!("// TO", "DO: later\nlet todos = 1;"))).len(), 1);
    assert_eq!(unexplained(&source(concat!("let x = unsafe", " { y() };"))).len(), 1);
    assert!(unexplained(&source(concat!("// SAFETY: y is pure\nlet x = unsafe", " { y() };"))).is_empty());
}

/// Doc comments that stand for their subject by a pronoun: each is read alone, in an editor's hint or on its page.
fn without_subject(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().map(str::trim_start).collect();
    let begins = |at: usize| lines[at].strip_prefix("/// ").filter(|_| at == 0 || !lines[at - 1].starts_with("///"));
    let first = |at: usize| begins(at).and_then(|text| text.split_whitespace().next());
    let lacks = |at: &usize| first(*at).is_some_and(|word| PRONOUNS.contains(&word));
    (0..lines.len()).filter(lacks).map(|at| format!("{}:{}: {}", source.path, at + 1, lines[at])).collect()
}

#[test]
fn a_doc_comment_reads_alone() {
    assert_eq!(sources().iter().flat_map(without_subject).collect::<Vec<_>>(), Vec::<String>::new());
    let found = |text: &str| without_subject(&Source { path: "a.rs".into(), text: text.into() }).len();
    assert_eq!(found("/// Its name.\nname: u8,\n\n    /// They end here.\n"), 2);
    assert_eq!(found("/// Name of the program.\n/// It may be empty.\n// Its end.\n"), 0);
}

/// Returns whether a remedy may be named here: its own folder, the registry, what is preloaded for it, the paper behind
/// it.
fn is_of_remedy(path: &str, name: &str) -> bool {
    let folder = format!("crates/remedies/src/{name}/");
    // The tap and the programs of `apps` may use no remedy (edges.rs), and have words of their own.
    let homes = [
        folder.as_str(),
        "crates/remedies/src/registry.rs",
        "crates/remedies/examples/",
        "native/",
        "research/",
        "apps/",
        "crates/tap/",
    ];
    homes.iter().any(|home| path.starts_with(home)) || path.starts_with("crates/verify/examples/")
}

/// Lines that name a remedy by its module or by its whole name.
fn names_of_remedies(source: &Source, name: &str) -> Vec<String> {
    if is_of_remedy(&source.path, name) || !source.path.ends_with(".rs") {
        return Vec::new();
    }
    let words = [format!("\"{name}\""), format!("remedy::{name}"), format!("crate::{name}::")];
    let named = source.text.lines().enumerate().filter(|(_, line)| words.iter().any(|word| line.contains(word)));
    named.map(|(i, line)| format!("{}:{}: {}", source.path, i + 1, line.trim())).collect()
}

#[test]
fn a_remedy_is_named_in_its_folder_and_in_the_registry_alone() {
    let sources = sources();
    for remedy in nearmiss_remedies::REMEDIES {
        let named: Vec<String> = sources.iter().flat_map(|source| names_of_remedies(source, remedy.name)).collect();
        assert!(named.is_empty(), "`{}` is named outside its folder:\n{}", remedy.name, named.join("\n"));
    }
    // The test sees what it forbids.
    let bad = Source {
        path: "crates/cli/src/verify.rs".into(),
        text: format!("run({:?})", nearmiss_remedies::REMEDIES[0].name),
    };
    assert_eq!(names_of_remedies(&bad, nearmiss_remedies::REMEDIES[0].name).len(), 1);
}

/// Returns the examples of help texts that clap would wrap: a wrapped line is no line to copy.
fn wrapped_examples(source: &Source) -> Vec<String> {
    let is_too_long = |line: &str| {
        let text = line.strip_suffix(")]").or(line.strip_suffix(',')).or(line.strip_suffix(';')).unwrap_or(line);
        line.starts_with("  nearmiss ") && text.trim_end_matches('"').chars().count() > HELP_COLUMNS
    };
    let long = source.text.lines().enumerate().filter(|(_, line)| is_too_long(line));
    long.map(|(i, line)| format!("{}:{}: {}", source.path, i + 1, line.trim())).collect()
}

#[test]
fn an_example_fits_into_the_help() {
    let sources = sources();
    let ours = sources.iter().filter(|source| source.path.starts_with("crates/") && source.path.ends_with(".rs"));
    assert_eq!(ours.flat_map(wrapped_examples).collect::<Vec<_>>(), Vec::<String>::new());
    let example = |columns: usize| format!("{:columns$}\",", "  nearmiss doctor");
    let found = |columns| wrapped_examples(&Source { path: "a.rs".into(), text: example(columns) + "\n" }).len();
    assert_eq!([found(HELP_COLUMNS), found(HELP_COLUMNS + 1)], [0, 1]);
}

/// Returns the number of [`TALK`]'s words; an identifier is as many words as it has parts.
fn talk(text: &str) -> usize {
    let is_talk =
        |word: &str| TALK.iter().any(|(begin, ends)| word.strip_prefix(begin).is_some_and(|rest| ends.contains(&rest)));
    let (mut count, mut word, mut lower) = (0, String::new(), false);
    for c in text.chars().chain([' ']) {
        if !c.is_ascii_alphabetic() || lower && c.is_ascii_uppercase() {
            count += usize::from(is_talk(&word));
            word.clear();
        }
        if c.is_ascii_alphabetic() {
            word.push(c.to_ascii_lowercase());
        }
        lower = c.is_ascii_lowercase();
    }
    count
}

/// All files of Rust and C, tests included; what others wrote and what was built are left out.
fn collect_code(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            if !matches!(entry.file_name().to_str(), Some("vendor" | "target")) {
                collect_code(&path, files);
            }
        } else if path.extension().is_some_and(|e| ["rs", "c", "h"].iter().any(|kind| e == *kind)) {
            files.push(path);
        }
    }
}

#[test]
fn names_and_texts_use_the_verbs_of_the_field() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    WORDED.iter().for_each(|directory| collect_code(&root.join(directory), &mut files));
    let (mut lines, mut counts) = (0, Vec::new());
    for path in files {
        let text = String::from_utf8_lossy(&fs::read(&path).expect("a readable file")).into_owned();
        lines += text.lines().count();
        counts.push((talk(&text), path.strip_prefix(&root).unwrap_or(&path).display().to_string()));
    }
    assert!(lines > 100_000, "{lines} lines found");
    let words: usize = counts.iter().map(|(count, _)| count).sum();
    let per_thousand = words as f64 * 1e3 / lines as f64;
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts.truncate(20);
    let densest: Vec<String> = counts.iter().map(|(count, path)| format!("{count} {path}")).collect();
    let densest = densest.join("\n");
    assert!(
        per_thousand <= MOST_TALK,
        "{words} words of talk in {lines} lines, {per_thousand:.2} in a thousand; {MOST_TALK} at most. Most in:\n{densest}"
    );
}

#[test]
fn talk_is_counted_by_the_parts_of_a_name() {
    let joined = |begin: &str, end: &str| format!("{begin}{end}");
    let (verb, other) = (joined("t", "old"), joined("m", "et"));
    assert_eq!(talk(&format!("is_{verb} = {verb}By({other}); // The {other}al")), 3);
    assert_eq!(talk(&format!("{} kernel{verb} MOST_{} {verb}2", joined("W", "hose"), joined("S", "AID"))), 3);
}
