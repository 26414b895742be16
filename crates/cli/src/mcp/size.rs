//! Sizes of answers: texts are cut and rows left out until an answer is small.

use nearmiss_record::words::quoted;

/// How much of a record an answer has.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Characters of a text.
    pub characters: usize,
    /// Rows of a table, entries of a list.
    pub rows: usize,
}

/// The largest first.
pub const SIZES: [Size; 6] = [
    Size { characters: 400, rows: 8 },
    Size { characters: 300, rows: 5 },
    Size { characters: 200, rows: 4 },
    Size { characters: 140, rows: 3 },
    Size { characters: 90, rows: 2 },
    Size { characters: 50, rows: 1 },
];

impl Size {
    /// A text, cut at a word where it is too long.
    pub fn text(self, text: &str) -> String {
        cut(text, self.characters)
    }

    /// The first entries, each as the size has it.
    pub fn rows<T, U>(self, entries: &[T], entry: impl Fn(&T) -> U) -> Vec<U> {
        entries.iter().take(self.rows).map(entry).collect()
    }

    /// The first texts.
    pub fn texts(self, texts: &[String]) -> Vec<String> {
        self.rows(texts, |text| self.text(text))
    }

    /// A command to copy, whole or not at all.
    pub fn command(self, words: &[String]) -> Option<String> {
        let line = quoted(words);
        (line.len() <= 2 * self.characters).then_some(line)
    }
}

/// A text of so many characters at most, with the sign of a cut.
pub fn cut(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    let whole: String = text.chars().take(characters.saturating_sub(1)).collect();
    let words = whole.rsplit_once(' ').map_or(whole.as_str(), |(words, _)| words);
    format!("{words}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_a_word() {
        assert_eq!(cut("one two three", 13), "one two three");
        assert_eq!(cut("one two three", 12), "one two…");
        assert_eq!(cut("µµµµ", 3), "µµ…");
    }

    #[test]
    fn a_command_is_whole_or_missing() {
        let size = Size { characters: 4, rows: 1 };
        assert_eq!(size.command(&["a".to_owned(), "b c".to_owned()]).as_deref(), Some("a 'b c'"));
        assert_eq!(size.command(&["longer than that".to_owned()]), None);
    }
}
