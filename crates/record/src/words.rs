//! Numbers and words as people read them: the one place that formats a share or a size.

use crate::units::Bytes;

/// `1,024`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 set`, `12 sets`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// `color`, `color or apart`, `color, apart or pace`: with the word before the last.
pub fn listed(names: &[String], word: &str) -> String {
    match names {
        [all @ .., last] if !all.is_empty() => format!("{} {word} {last}", all.join(", ")),
        _ => names.concat(),
    }
}

/// `part` of `whole` in percent; 0 when there is no whole.
pub fn percentage(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Returns a share with so many digits after the point for any size: for a column.
pub fn fixed_percent(share: f64, decimals: usize) -> String {
    format!("{:.decimals$}%", share * 100.0)
}

/// `12.3%`: a part of a whole, as a column has it; `–` when there is no whole.
pub fn percent_of(part: u64, whole: u64) -> String {
    if whole == 0 { "–".to_owned() } else { fixed_percent(part as f64 / whole as f64, 1) }
}

/// `0.42%`: misses of references, of which most caches have few; `–` when there are none.
pub fn miss_ratio(misses: u64, references: u64) -> String {
    if references == 0 { "–".to_owned() } else { fixed_percent(misses as f64 / references as f64, 2) }
}

/// `37%`, `0.4%`: a share to two digits.
pub fn percent(share: f64) -> String {
    fixed_percent(share, usize::from((share * 100.0).abs() < 9.95))
}

/// Returns `83%`, `4%`, `0.3%`, `under 0.1%`: for a sentence.
pub fn spoken_percent(part: u64, whole: u64) -> String {
    let p = percentage(part, whole);
    if part > 0 && p < 0.1 {
        "under 0.1%".to_owned()
    } else if part > 0 && p < 9.95 && part != whole {
        let text = format!("{p:.1}");
        format!("{}%", text.strip_suffix(".0").unwrap_or(&text))
    } else if part < whole && p > 99.5 {
        // Only a whole is shown as 100%.
        "over 99%".to_owned()
    } else {
        format!("{p:.0}%")
    }
}

/// `1.23 s`, `45.0 ms`, `12 µs`.
pub fn duration(nanos: u64) -> String {
    let seconds = nanos as f64 / 1e9;
    if seconds >= 100.0 {
        format!("{seconds:.0} s")
    } else if seconds >= 1.0 {
        format!("{seconds:.2} s")
    } else if seconds >= 1e-3 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{:.0} µs", seconds * 1e6)
    }
}

/// `8 KiB` where that is exact, else `123.3 MiB`.
pub fn bytes(n: u64) -> String {
    let exact = Bytes(n).to_string();
    let unit = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")].into_iter().find(|(shift, _)| n >> shift > 0);
    match unit {
        Some((shift, unit)) if exact.len() > "1023 KiB".len() || exact.ends_with(" B") => {
            format!("{:.1} {unit}", n as f64 / (1u64 << shift) as f64)
        }
        _ => exact,
    }
}

/// Words that a shell reads as one.
pub fn quoted(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/=:,@%+".contains(c);
    let word = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Returns why a file could not be read or written, and the advice.
pub fn io_error(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    let text = error.to_string();
    let why = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
    let advice = match error.kind() {
        ErrorKind::NotFound => "; is the path right? directories on the way must exist",
        ErrorKind::PermissionDenied => "; it is another user's: choose another place, or become that user",
        ErrorKind::ReadOnlyFilesystem => "; choose another place",
        ErrorKind::StorageFull => "; make room, or choose another place",
        ErrorKind::IsADirectory => "; name a file",
        _ => "",
    };
    format!("{why}{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!((counted(1, "set"), counted(32, "set")), ("1 set".to_owned(), "32 sets".to_owned()));
        assert_eq!([0.371, 0.004, -0.5].map(percent), ["37%", "0.4%", "-50%"]);
        assert_eq!([percent_of(1, 3), miss_ratio(1, 3), percent_of(0, 0)], ["33.3%", "33.33%", "–"]);
        assert_eq!([percentage(1, 4), percentage(1, 0)], [25.0, 0.0]);
        assert_eq!([64, 8192, 3456, 129_278_272].map(bytes), ["64 B", "8 KiB", "3.4 KiB", "123.3 MiB"]);
    }

    #[test]
    fn a_sentence_never_rounds_to_all_or_nothing() {
        assert_eq!(spoken_percent(1, 100_000), "under 0.1%");
        assert_eq!(spoken_percent(99_999, 100_000), "over 99%");
        assert_eq!(spoken_percent(83, 100), "83%");
        assert_eq!(spoken_percent(4, 100), "4%");
        assert_eq!(spoken_percent(0, 100), "0%");
        assert_eq!(spoken_percent(5, 5), "100%");
    }

    #[test]
    fn an_error_names_what_to_do() {
        let error = std::io::Error::from_raw_os_error(2);
        assert_eq!(io_error(&error), "no such file or directory; is the path right? directories on the way must exist");
    }

    #[test]
    fn a_shell_reads_the_same_words() {
        let words = ["./a", "b c", "it's", ""].map(str::to_owned);
        assert_eq!(quoted(&words), r"./a 'b c' 'it'\''s' ''");
    }
}
