//! Numbers as sentences have them.

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

/// `37%`, `0.4%`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() < 9.95 { format!("{percent:.1}%") } else { format!("{percent:.0}%") }
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

/// Why a file could not be read or written, and what to do about it.
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
    }

    #[test]
    fn an_error_says_what_to_do() {
        let error = std::io::Error::from_raw_os_error(2);
        assert_eq!(io_error(&error), "no such file or directory; is the path right? directories on the way must exist");
    }

    #[test]
    fn a_shell_reads_the_same_words() {
        let words = ["./a", "b c", "it's", ""].map(str::to_owned);
        assert_eq!(quoted(&words), r"./a 'b c' 'it'\''s' ''");
    }
}
