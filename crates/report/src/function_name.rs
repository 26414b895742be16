//! Names of functions as people write and read them: folded, and found by a part.

use crate::name::plain;
use std::collections::HashMap;

/// The name with template arguments and parameter lists folded: `std::vector<…>::push_back(…)`.
pub fn folded(name: &str) -> String {
    fold(name, "…")
}

/// Names of the rows of one table: folded, and as they are where two different ones would read alike.
pub fn of_table<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let names: Vec<&str> = names.collect();
    let mut first: HashMap<String, &str> = HashMap::new();
    let mut alike: Vec<String> = Vec::new();
    for name in &names {
        let short = folded(name);
        if *first.entry(short.clone()).or_insert(name) != *name {
            alike.push(short);
        }
    }
    let distinct = |name: &&str| Some(folded(name)).filter(|short| !alike.contains(short));
    names.iter().map(|name| plain(&distinct(name).unwrap_or_else(|| (*name).to_owned()))).collect()
}

/// The last part of a function's path, without what is folded and without what compilers append to clones.
fn base(name: &str) -> String {
    let bare = fold(name, "").replace("<>", "").replace("()", "");
    let bare = bare.trim_end_matches(" const").split(" [clone").next().unwrap_or_default().trim();
    let last = bare.rsplit("::").next().unwrap_or(bare);
    // A template's instance is listed with its return type.
    let last = if last.starts_with("operator") { last } else { last.rsplit(' ').next().unwrap_or(last) };
    match last.find('.') {
        Some(at) if at > 0 => last[..at].to_owned(),
        _ => last.to_owned(),
    }
}

/// Returns those of `names` that somebody who wrote `wanted` means: the very name; else every name that is `wanted` but
/// for parameters and template arguments; else every name with this last part. Errors: none; the names nearest to
/// `wanted`.
pub fn find<'a>(wanted: &str, names: impl Iterator<Item = &'a str> + Clone) -> Result<Vec<&'a str>, Vec<&'a str>> {
    let bare = |name: &str| fold(name, "").replace("<>", "").replace("()", "");
    let is_wanted: [&dyn Fn(&str) -> bool; 3] =
        [&|name| name == wanted, &|name| bare(name) == bare(wanted), &|name| base(name) == wanted];
    for fits in is_wanted {
        let mut found: Vec<&str> = names.clone().filter(|name| fits(name)).collect();
        found.sort_unstable();
        found.dedup();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Err(nearest(wanted, names))
}

fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    const MOST: usize = 3;
    const LEAST: f64 = 0.8;
    let mut near: Vec<(f64, &str)> = names
        .map(|name| (strsim::jaro_winkler(&base(wanted).to_lowercase(), &base(name).to_lowercase()), name))
        .filter(|(likeness, _)| *likeness >= LEAST)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    near.dedup_by_key(|(_, name)| *name);
    near.truncate(MOST);
    near.into_iter().map(|(_, name)| name).collect()
}

/// Describes the fault of a name that no function has.
pub fn unknown(wanted: &str, nearest: &[&str]) -> String {
    let wanted = plain(wanted);
    if nearest.is_empty() {
        return format!("no function `{wanted}`; the report lists functions by name");
    }
    let near: Vec<String> = nearest.iter().map(|name| format!("`{}`", plain(name))).collect();
    format!("no function `{wanted}`; near it: {}", near.join(", "))
}

const OPERATORS: [&str; 12] = ["<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "<", ">"];
const ANONYMOUS: &str = "(anonymous namespace)";

/// `name` with the content of its outermost brackets replaced.
fn fold(name: &str, by: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let whole = match c {
            _ if out.ends_with("operator") => OPERATORS.iter().find(|o| rest.starts_with(**o)).map_or(0, |o| o.len()),
            '(' if rest.starts_with(ANONYMOUS) => ANONYMOUS.len(),
            '{' => closed(rest).unwrap_or(0),
            _ => 0,
        };
        let group = if whole == 0 && matches!(c, '<' | '(') { closed(rest) } else { None };
        let taken = match group {
            // Rust names a method of a trait `<Type as Trait>::method`: the distinction is inside.
            Some(end) if c == '<' && out.is_empty() => {
                out += &format!("<{}>", fold(&rest[1..end - 1], by));
                end
            }
            Some(end) => {
                let empty = end == 2;
                let (open, close) = (&rest[..1], &rest[end - 1..end]);
                out += &[open, if empty { "" } else { by }, close].concat();
                end
            }
            None => {
                let end = if whole > 0 { whole } else { c.len_utf8() };
                out += &rest[..end];
                end
            }
        };
        rest = &rest[taken..];
    }
    out
}

/// Bytes up to and with the bracket that closes the first.
fn closed(text: &str) -> Option<usize> {
    let mut open = Vec::new();
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' => open.push('>'),
            '(' => open.push(')'),
            '{' => open.push('}'),
            '>' if before == '-' => {}
            '>' | ')' | '}' => {
                if open.pop() != Some(c) {
                    return None;
                }
                if open.is_empty() {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        before = c;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_brackets_is_folded() {
        let folds = [
            ("main", "main"),
            ("work(int)", "work(…)"),
            ("f()", "f()"),
            ("std::vector<int, std::allocator<int> >::push_back(int&&)", "std::vector<…>::push_back(…)"),
            ("(anonymous namespace)::go(int (*)(long))", "(anonymous namespace)::go(…)"),
            ("A::operator()(int) const", "A::operator()(…) const"),
            ("std::operator<< <char>(std::ostream&)", "std::operator<< <…>(…)"),
            ("x::{closure#0}", "x::{closure#0}"),
            ("<alloc::vec::Vec<u8> as core::ops::Drop>::drop", "<alloc::vec::Vec<…> as core::ops::Drop>::drop"),
            ("broken<(", "broken<("),
            ("[kernel]", "[kernel]"),
        ];
        for (name, expected) in folds {
            assert_eq!(folded(name), expected);
        }
    }

    #[test]
    fn a_function_is_found_by_a_part_of_its_name() {
        let names =
            ["work(int)", "ns::work(long)", "worker", "Tree<int>::insert(int)", "sum.part.0", "void go<int>(int)"];
        let found = |wanted| find(wanted, names.into_iter());
        assert_eq!(found("work(int)"), Ok(vec!["work(int)"]));
        assert_eq!(found("ns::work"), Ok(vec!["ns::work(long)"]));
        assert_eq!(found("work"), Ok(vec!["work(int)"]));
        assert_eq!(found("insert"), Ok(vec!["Tree<int>::insert(int)"]));
        assert_eq!(found("Tree::insert"), Ok(vec!["Tree<int>::insert(int)"]));
        assert_eq!(found("sum"), Ok(vec!["sum.part.0"]));
        assert_eq!(found("go"), Ok(vec!["void go<int>(int)"]));
        assert_eq!(found("wroker"), Err(vec!["worker", "ns::work(long)", "work(int)"]));
        assert_eq!(found("zzz"), Err(vec![]));
        assert_eq!(unknown("wroker", &["worker"]), "no function `wroker`; near it: `worker`");
    }

    #[test]
    fn names_that_would_read_alike_stay_whole() {
        let names = ["f<long::first::type>", "f<long::second::type>", "g<long::first::type>", "g<long::first::type>"];
        assert_eq!(of_table(names.into_iter()), [names[0], names[1], "g<…>", "g<…>"]);
        assert_eq!(of_table(["a\u{1b}[31m"].into_iter()), ["a\\u{1b}[31m"], "a name cannot steer the terminal");
    }
}
