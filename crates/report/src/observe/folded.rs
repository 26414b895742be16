//! Demangled names short enough for a table: template arguments and parameters that say little are folded.

use crate::name::plain;
use std::collections::HashMap;

/// Longest arguments that stay as they are.
const SHORT: usize = 12;

/// The name with each long list of template arguments or parameters as `…`: `std::vector<…>::push_back(int&&)`.
pub fn folded(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    while let Some(at) = opening(rest) {
        let (before, list) = rest.split_at(at);
        let Some(length) = list_length(list) else { break };
        out.push_str(before);
        let (open, inner, close) = (&list[..1], &list[1..length - 1], &list[length - 1..length]);
        let keeps = inner.len() <= SHORT || inner.starts_with("anonymous namespace");
        out.push_str(open);
        out.push_str(if keeps { inner } else { "…" });
        out.push_str(close);
        rest = &list[length..];
    }
    out.push_str(rest);
    out
}

/// Where a list of arguments begins: after the name that takes the arguments, or an anonymous namespace.
fn opening(text: &str) -> Option<usize> {
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let after_name = before.is_alphanumeric() || matches!(before, '_' | '>' | ')' | '}');
        let operator = text[..at].ends_with("operator") || text[..at].ends_with("operator<");
        if (c == '<' && after_name && !operator) || (c == '(' && (after_name || text[at..].starts_with("(anonymous"))) {
            return Some(at);
        }
        before = c;
    }
    None
}

/// Bytes from an opening bracket to the one that closes it; `None` where none does.
fn list_length(list: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut before = ' ';
    for (at, c) in list.char_indices() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' if before == '-' => {}
            '>' | ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
        before = c;
    }
    None
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
    let told = |name: &&str| Some(folded(name)).filter(|short| !alike.contains(short));
    names.iter().map(|name| plain(&told(name).unwrap_or_else(|| (*name).to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_folded() {
        for (name, short) in [
            ("std::vector<int, std::allocator<int> >::push_back(int&&)", "std::vector<…>::push_back(int&&)"),
            ("work(std::map<int, std::string>&, int)", "work(…)"),
            ("work<int>()", "work<int>()"),
            (
                "std::operator<< <std::char_traits<char> >(std::ostream&)",
                "std::operator<< <std::char_traits<char> >(…)",
            ),
            ("(anonymous namespace)::take(int)", "(anonymous namespace)::take(int)"),
            ("<alloc::vec::Vec<T> as core::ops::Drop>::drop", "<alloc::vec::Vec<T> as core::ops::Drop>::drop"),
            ("a::operator->(b<c>)", "a::operator->(b<c>)"),
            ("broken<int", "broken<int"),
            ("f(void (*)(int), g->h)", "f(…)"),
            ("main", "main"),
            ("[kernel]+0x12", "[kernel]+0x12"),
            ("naïve<ünïcödé, and more>", "naïve<…>"),
        ] {
            assert_eq!(folded(name), short);
        }
    }

    #[test]
    fn what_would_read_alike_stays_whole() {
        let names = ["f<long::first::type>", "f<long::second::type>", "g<long::first::type>", "g<long::first::type>"];
        assert_eq!(of_table(names.into_iter()), [names[0], names[1], "g<…>", "g<…>"]);
        assert_eq!(of_table(["a\u{1b}[31m"].into_iter()), ["a\\u{1b}[31m"], "a name cannot steer the terminal");
    }
}
