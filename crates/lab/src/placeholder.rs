//! `{name}` in commands, variables and file names.

use std::collections::BTreeMap;

/// A piece of text.
enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
}

/// `{name}` is a placeholder unless a `$` precedes it, as in the shell; `{{name}}` stands for `{name}`.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, braced) = rest.split_at(open);
        let inside = &braced[1..];
        let doubled = inside.strip_prefix('{').and_then(|inner| name_in_braces(inner, "}}"));
        let end = match (doubled, name_in_braces(inside, "}")) {
            (Some(name), _) => {
                found.extend([Piece::Text(before), Piece::Text(&inside[..name.len() + 2])]);
                name.len() + 4
            }
            (None, Some(name)) if !before.ends_with('$') => {
                found.extend([Piece::Text(before), Piece::Name(name)]);
                name.len() + 2
            }
            _ => {
                found.push(Piece::Text(&rest[..=open]));
                1
            }
        };
        rest = &braced[end..];
    }
    found.push(Piece::Text(rest));
    found
}

/// A name that ends with these braces.
fn name_in_braces<'a>(text: &'a str, close: &str) -> Option<&'a str> {
    let (name, rest) = text.split_at(text.find(|c: char| !is_of_name(c))?);
    (is_name(name) && rest.starts_with(close)).then_some(name)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'
}

/// The names that a text uses.
pub(crate) fn names(text: &str) -> Vec<&str> {
    let name = |piece| if let Piece::Name(name) = piece { Some(name) } else { None };
    pieces(text).into_iter().filter_map(name).collect()
}

/// Whether a placeholder may have this name.
pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_of_name)
}

/// The text with its placeholders' values. An unknown one stays as it is: the check of the specification refuses it.
pub(crate) fn fill(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Name(name) => match values.get(name) {
                // Not looked into again: a value is no text with placeholders.
                Some(value) => filled.push_str(value),
                None => filled.extend(["{", name, "}"]),
            },
        }
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_braces_are_filled_in() {
        let values = BTreeMap::from([("size".to_owned(), "4M".to_owned()), ("dir1".to_owned(), "/x".to_owned())]);
        for (text, filled) in [
            ("--size={size} --to={dir1}/f", "--size=4M --to=/x/f"),
            ("{size}{size}", "4M4M"),
            ("awk '{ print $1 }' ${size} {{size}} {", "awk '{ print $1 }' ${size} {size} {"),
            ("{other} {Size} {1a} {}", "{other} {Size} {1a} {}"),
        ] {
            assert_eq!(fill(text, &values), filled);
        }
        assert_eq!(names("{a} ${b} {{c}} {d_1}"), ["a", "d_1"]);
        assert!(is_name("dir1") && !is_name("1") && !is_name("A"));
    }
}
