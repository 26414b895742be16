//! Which part of a command's run is recorded.

use nearmiss_record::abi::{FIRST_MARK, FROM_BEGIN, FROM_CONSUMER, FROM_MARK, FROM_NEAR_MARK, FROM_SYMBOL};
use std::str::FromStr;
use std::time::Duration;

/// Highest number of a program's mark.
pub const LAST_MARK: u16 = 4095;

/// A program's mark: `mark:N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(pub u16);

/// Event that opens the window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// The command's first instruction.
    #[default]
    Begin,
    /// `mark:N`: the program executes `NEARMISS_MARK(N)`.
    Mark(Mark),
    /// Some instructions behind a mark. The guest runs several times as fast until then, and the objects that are
    /// allocated meanwhile have no allocation site.
    Near(Mark),
    /// `time:DURATION`: so long after the command began, by the clock of this machine.
    Time(Duration),
    /// `symbol:NAME[@MODULE]`: the first execution of a function, of the first file mapped that defines it.
    Symbol {
        /// Name of the function in the symbol table.
        name: String,
        /// File name of the program or library, without its directory.
        module: Option<String>,
    },
}

/// How long the window stays open, once it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// `DURATION`, by the clock of this machine.
    Time(Duration),
    /// `Ninsn`: counted instructions of all CPUs together.
    Instructions(u64),
}

/// The window. The default is the whole command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Event that opens the window.
    pub from: Start,
    /// Length after which the window closes before the command's end.
    pub length: Option<Length>,
    /// Mark that closes the window.
    pub until: Option<Mark>,
}

impl FromStr for Mark {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_prefix("mark:").and_then(|n| n.parse().ok()).filter(|n| *n <= LAST_MARK);
        number.map(Mark).ok_or_else(|| format!("write mark:N, with N from 0 to {LAST_MARK}"))
    }
}

impl FromStr for Start {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match kind {
            "mark" => text.parse().map(Start::Mark),
            "time" => duration(rest).map(Start::Time),
            "symbol" => {
                let (name, module) = match rest.rsplit_once('@') {
                    Some((name, module)) => (name, Some(module.to_owned())),
                    None => (rest, None),
                };
                if name.is_empty() || module.as_ref().is_some_and(String::is_empty) {
                    return Err("write symbol:NAME or symbol:NAME@MODULE, such as symbol:main@sort".into());
                }
                Ok(Start::Symbol { name: name.into(), module })
            }
            _ => Err("write mark:N, time:DURATION or symbol:NAME[@MODULE]".into()),
        }
    }
}

impl FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(count) = text.strip_suffix("insns").or(text.strip_suffix("insn")) else {
            return duration(text).map(Length::Time);
        };
        let (digits, scale) = match count.as_bytes().last() {
            Some(b'k' | b'K') => (&count[..count.len() - 1], 1_000),
            Some(b'M') => (&count[..count.len() - 1], 1_000_000),
            Some(b'G') => (&count[..count.len() - 1], 1_000_000_000),
            _ => (count, 1),
        };
        let instructions = digits.trim().parse::<u64>().ok().and_then(|n| n.checked_mul(scale)).filter(|n| *n > 0);
        instructions
            .map(Length::Instructions)
            .ok_or_else(|| "write a whole number of instructions above 0, such as 800insn, 20kinsn or 50Minsn".into())
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; write a time such as 500ms, 2s or 1m"))
}

impl std::fmt::Display for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Start::Begin => f.write_str("the command's first instruction"),
            Start::Mark(Mark(n)) | Start::Near(Mark(n)) => write!(f, "mark {n}"),
            Start::Time(time) => {
                write!(f, "{} after the command began", humantime::format_duration(*time))
            }
            Start::Symbol { name, module: Some(module) } => write!(f, "function {name} of {module}"),
            Start::Symbol { name, module: None } => write!(f, "function {name}"),
        }
    }
}

impl Window {
    /// Returns a remark for the reader of the run; none for the whole command.
    pub fn note(&self) -> Option<String> {
        if *self == Window::default() {
            return None;
        }
        let mut text = format!("the window opens at {}", self.from);
        match self.length {
            Some(Length::Time(time)) => text += &format!(", for {} at most", humantime::format_duration(time)),
            Some(Length::Instructions(n)) => text += &format!(", for {n} instructions at most"),
            None => {}
        }
        if let Some(Mark(n)) = self.until {
            text += &format!(", until mark {n}");
        }
        Some(text + "; nothing outside it was recorded")
    }

    /// The words of the control page: kind, value, mark that closes, instructions.
    pub(super) fn words(&self) -> (u32, u64, u32, u64) {
        let number = |mark: Mark| FIRST_MARK + u64::from(mark.0);
        let (kind, value) = match &self.from {
            Start::Begin => (FROM_BEGIN, 0),
            Start::Mark(mark) => (FROM_MARK, number(*mark)),
            Start::Near(mark) => (FROM_NEAR_MARK, number(*mark)),
            Start::Time(_) => (FROM_CONSUMER, 0),
            Start::Symbol { .. } => (FROM_SYMBOL, 0),
        };
        let until = self.until.map_or(0, |mark| number(mark) as u32);
        let instructions = match self.length {
            Some(Length::Instructions(n)) => n,
            _ => 0,
        };
        (kind, value, until, instructions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_read_as_their_help_describes() {
        assert_eq!("mark:3".parse(), Ok(Start::Mark(Mark(3))));
        assert_eq!("time:500ms".parse(), Ok(Start::Time(Duration::from_millis(500))));
        let symbol = |name: &str, module: Option<&str>| {
            Ok(Start::Symbol { name: name.into(), module: module.map(str::to_owned) })
        };
        assert_eq!("symbol:main".parse(), symbol("main", None));
        assert_eq!("symbol:a::b@libx.so.1".parse(), symbol("a::b", Some("libx.so.1")));
        assert_eq!("50Minsn".parse(), Ok(Length::Instructions(50_000_000)));
        assert_eq!("7insns".parse(), Ok(Length::Instructions(7)));
        assert_eq!("2s".parse(), Ok(Length::Time(Duration::from_secs(2))));
        for bad in ["", "mark", "mark:4096", "mark:-1", "time:", "time:3", "symbol:", "symbol:@x", "symbol:x@", "main"]
        {
            assert!(bad.parse::<Start>().is_err(), "{bad}");
        }
        for bad in ["", "0insn", "1.5Minsn", "Minsn", "99999999999Ginsn", "7"] {
            assert!(bad.parse::<Length>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_control_page_gets_the_numbers_that_marks_are_delivered_with() {
        let window = Window { from: Start::Mark(Mark(0)), length: None, until: Some(Mark(2)) };
        assert_eq!(window.words(), (FROM_MARK, 16, 18, 0));
        let window = Window { from: Start::Near(Mark(0)), ..window };
        assert_eq!(window.words(), (FROM_NEAR_MARK, 16, 18, 0));
    }
}
