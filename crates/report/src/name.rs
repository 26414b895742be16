//! Names from the traced program: hostile until shown safe, and of any length.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The name with everything that could steer a terminal or turn text around spelled out.
pub fn plain(name: &str) -> String {
    name.chars()
        .flat_map(|c| {
            let steers = c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
            let (spelled, kept) = if steers { (Some(c.escape_unicode()), None) } else { (None, Some(c)) };
            spelled.into_iter().flatten().chain(kept)
        })
        .collect()
}

/// A plain name, cut at its end to `width` columns.
pub fn fitted(name: &str, width: usize) -> String {
    let name = plain(name);
    if name.width() <= width {
        return name;
    }
    let head = take_columns(name.chars(), width.saturating_sub(1));
    format!("{}…", head.trim_end())
}

/// A name fitted and padded with spaces on the right to exactly `width` columns.
pub fn cell(name: &str, width: usize) -> String {
    let text = fitted(name, width);
    let padding = width.saturating_sub(text.width());
    text + &" ".repeat(padding)
}

/// Padded with spaces on the left to at least `width` columns.
pub fn right(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(text.width())) + text
}

fn take_columns(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= columns
        })
        .collect()
}

/// Words of `text` in lines of at most `width` columns; a longer word has a line of its own.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Last part of a path.
pub fn file_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(plain("a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\u{a}");
        assert_eq!(plain("\u{202e}gnp.exe"), "\\u{202e}gnp.exe");
        assert_eq!(plain("größe<T>"), "größe<T>");
    }

    #[test]
    fn a_long_name_is_cut_at_its_end() {
        assert_eq!(fitted("std::vector<long long>::push_back", 16), "std::vector<lon…");
        assert_eq!(fitted("kernel other", 8), "kernel…");
        assert_eq!(fitted("漢字漢字", 6), "漢字…");
        assert_eq!(cell("ab", 4), "ab  ");
        assert_eq!(fitted("abc", 0), "…");
    }

    #[test]
    fn words_wrap() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
    }
}
