//! No source files use each other in a circle: who reads one of such files reads all of them.
//!
//! A file uses another if one of its paths leads into it; a path to a name that a module only passes on leads to where
//! the name is from. A module's use of its own parts does not count: it is what puts them together.

use crate::product::product;
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Path of a module in its crate.
type Module = Vec<String>;

/// Modules of one crate with the modules that each one uses.
type Uses = BTreeMap<Module, BTreeSet<Module>>;

/// Names that modules use from elsewhere, each with its path: whoever sees such a name there may use it.
type Imports = BTreeMap<(Module, String), Module>;
/// Modules that pass one name on, at most.
const MOST_PASSES: usize = 8;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Directories of source files, one a crate.
fn crates() -> Vec<PathBuf> {
    let below =
        |folder: &str| fs::read_dir(root().join(folder)).expect("a folder").map(|entry| entry.expect("one").path());
    let of_folders = ["crates", "libs", "apps"].into_iter().flat_map(below).map(|path| path.join("src"));
    of_folders.chain([root().join("research/papers")]).collect()
}

/// Files of a crate by module; tests and programs are left out.
fn modules(source: &Path) -> BTreeMap<Module, PathBuf> {
    let mut found = BTreeMap::new();
    let mut directories = vec![source.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("tests") {
                directories.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let name = path.with_extension("");
                let name = name.strip_prefix(source).expect("below the crate");
                let mut module: Module = name.iter().map(|part| part.to_string_lossy().into_owned()).collect();
                match module.last().map(String::as_str) {
                    Some("mod" | "lib") => drop(module.pop()),
                    Some(last) if last == "main" || last == "tests" || last.ends_with("_tests") => continue,
                    _ => {}
                }
                found.insert(module, path);
            }
        }
    }
    found
}

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern")
}

/// Paths of a source text: those of its `use` items, with `{…}` spread out, and all others. Comments, strings and tests
/// are left out.
fn paths(text: &str) -> [Vec<Module>; 2] {
    let without = |text: &str, kind: &str| pattern(kind).replace_all(text, " ").into_owned();
    let code = without(&without(&product(text), "//[^\n]*"), "\"(?:[^\"\\\\]|\\\\.)*\"");
    let uses = pattern(r"\buse\s+([^;]+);");
    let imported = uses.captures_iter(&code).flat_map(|one| spread(&one[1])).collect();
    let rest = uses.replace_all(&code, "");
    let inline = pattern(r"\b[a-z_][a-z0-9_]*(?:::\w+)+");
    [imported, inline.find_iter(&rest).map(|path| parts(path.as_str())).collect()]
}

fn parts(path: &str) -> Module {
    path.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// The paths of a tree such as `a::{b, c::{d, e}}`.
fn spread(tree: &str) -> Vec<Module> {
    let Some((before, inside)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return vec![parts(path)];
    };
    let inside = inside.trim_end().strip_suffix('}').unwrap_or(inside);
    let mut depth = 0;
    let branches = inside.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    let prefix = parts(before);
    branches.flat_map(spread).map(|rest| [prefix.clone(), rest].concat()).collect()
}

/// The module of the crate that a path leads into, as far as there is one.
fn leads_to(from: &Module, path: &Module, modules: &BTreeSet<Module>, imports: &Imports) -> Option<Module> {
    let (mut at, mut name) = walk(from, path, modules)?;
    for _ in 0..MOST_PASSES {
        let passed_on = name.and_then(|name| imports.get(&(at.clone(), name)));
        let Some(next) = passed_on.and_then(|path| walk(&at, path, modules)) else { break };
        (at, name) = next;
    }
    Some(at)
}

/// The last module on a path, and the name behind it.
fn walk(from: &Module, path: &Module, modules: &BTreeSet<Module>) -> Option<(Module, Option<String>)> {
    let mut at = from.clone();
    let mut rest = path.as_slice();
    match rest.first().map(String::as_str)? {
        "crate" => (at, rest) = (Module::new(), &rest[1..]),
        "self" => rest = &rest[1..],
        "super" => {
            while rest.first().is_some_and(|part| part == "super") {
                at.pop();
                rest = &rest[1..];
            }
        }
        part if !modules.contains(&[at.as_slice(), &[part.to_owned()]].concat()) => return None,
        _ => {}
    }
    while let Some((part, behind)) = rest.split_first() {
        at.push(part.clone());
        if !modules.contains(&at) {
            at.pop();
            break;
        }
        rest = behind;
    }
    modules.contains(&at).then(|| (at, rest.first().cloned()))
}

fn uses_of(source: &Path) -> Uses {
    let text = |file: &Path| fs::read_to_string(file).expect("a source file");
    used_in(&modules(source).into_iter().map(|(module, file)| (module, text(&file))).collect())
}

/// Uses among source texts, by module.
fn used_in(texts: &BTreeMap<Module, String>) -> Uses {
    let modules: BTreeSet<Module> = texts.keys().cloned().collect();
    let paths: BTreeMap<&Module, [Vec<Module>; 2]> = texts.iter().map(|(module, text)| (module, paths(text))).collect();
    let imported = paths.iter().flat_map(|(module, [imported, _])| imported.iter().map(move |path| (*module, path)));
    let imports: Imports =
        imported.filter_map(|(module, path)| Some(((module.clone(), path.last()?.clone()), path.clone()))).collect();
    let uses = |(module, paths): (&&Module, &[Vec<Module>; 2])| {
        let led = paths.iter().flatten().filter_map(|path| leads_to(module, path, &modules, &imports));
        ((*module).clone(), led.filter(|other| !other.starts_with(module)).collect())
    };
    paths.iter().map(uses).collect()
}

/// Groups of modules that reach each other.
fn circles(uses: &Uses) -> Vec<Vec<String>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> = uses.keys().map(|from| (from, reach(from, uses))).collect();
    let circle = |of: &Module| -> BTreeSet<&Module> {
        reached[of].iter().copied().filter(|other| reached[*other].contains(of)).collect()
    };
    let all: BTreeSet<BTreeSet<&Module>> = uses.keys().map(circle).filter(|circle| circle.len() > 1).collect();
    all.into_iter().map(|circle| circle.into_iter().map(|module| module.join("/")).collect()).collect()
}

/// Modules that a module uses, and those that these use, and so on.
fn reach<'a>(from: &'a Module, uses: &'a Uses) -> BTreeSet<&'a Module> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(module) = next.pop() {
        next.extend(uses.get(module).into_iter().flatten().filter(|used| reached.insert(*used)));
    }
    reached
}

#[test]
fn files_use_each_other_one_way() {
    let found = crates().iter().flat_map(|source| circles(&uses_of(source))).collect::<Vec<_>>();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_circle_would_be_seen() {
    let module = |name: &str| parts(name);
    let uses: Uses = [("a", "b"), ("b", "c::d"), ("c::d", "a"), ("e", "a")]
        .map(|(from, to)| (module(from), BTreeSet::from([module(to)])))
        .into();
    assert_eq!(circles(&uses), [["a", "b", "c/d"]]);
    assert_eq!(
        spread("crate::{a, b::{self, C as D}, e}"),
        ["crate::a", "crate::b::self", "crate::b::C", "crate::e"].map(parts)
    );
    let text = "use super::x::Y; // crate::comment::Z\nfn f() { crate::g::h(\"crate::string::W\") }\n#[cfg(test)]\nmod tests { use crate::t; }";
    assert_eq!(paths(text), [vec![parts("super::x::Y")], vec![parts("crate::g::h")]]);
}

#[test]
fn a_name_that_is_passed_on_leads_to_where_it_is_from() {
    let texts = [
        ("a", "mod reader;\nmod checks;\npub use reader::Bad;"),
        ("a::reader", "use super::checks::check;\npub struct Bad;"),
        ("a::checks", "use super::Bad;\npub fn check() {}"),
    ];
    let uses = used_in(&texts.map(|(module, text)| (parts(module), text.to_owned())).into());
    assert_eq!(circles(&uses), [["a/checks", "a/reader"]]);
}
