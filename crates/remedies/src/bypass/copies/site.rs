//! Names of call sites, as `diagnose` prints and `apply --site` reads them.

use std::fmt;
use std::str::FromStr;

/// Call site of a copy: a call, and optionally the caller of the function that the call is in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    /// The call.
    pub place: CodeLocation,
    /// Caller of the function that the call is in; none: any caller.
    pub caller: Option<CodeLocation>,
}

/// A function, or an address of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CodeLocation {
    /// Any address of the function of this name.
    Function(String),
    /// One instruction: of a call, the call itself.
    Address {
        /// Name of the program or library, without directories.
        module: String,
        /// Address it was linked for, as `objdump` and `addr2line` have it.
        linked: u64,
    },
}

impl CodeLocation {
    /// An address of a file, known by its path.
    pub fn address(path: &str, linked: u64) -> Self {
        CodeLocation::Address { module: path.rsplit('/').next().unwrap_or(path).to_owned(), linked }
    }
}

impl fmt::Display for CodeLocation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodeLocation::Function(name) => out.write_str(name),
            CodeLocation::Address { module, linked } => write!(out, "{module}+{linked:#x}"),
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.fmt(out)?;
        self.caller.as_ref().map_or(Ok(()), |caller| write!(out, "@{caller}"))
    }
}

impl FromStr for CodeLocation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no call site; write FUNC or MODULE+0xOFF, with @CALLER or without");
        // The library reads lines of words.
        if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(wrong());
        }
        match text.rsplit_once("+0x") {
            None => Ok(CodeLocation::Function(text.to_owned())),
            Some((module, digits)) => {
                let linked = u64::from_str_radix(digits, 16).map_err(|_| wrong())?;
                let place = CodeLocation::address(module, linked);
                if matches!(&place, CodeLocation::Address { module, .. } if module.is_empty()) {
                    Err(wrong())
                } else {
                    Ok(place)
                }
            }
        }
    }
}

impl FromStr for Site {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('@') {
            None => Ok(Site { place: text.parse()?, caller: None }),
            Some((place, caller)) => Ok(Site { place: place.parse()?, caller: Some(caller.parse()?) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_site_is_read_back() {
        for text in ["keep_record", "tar+0x1f0", "libz.so.1+0x20@main", "copy@tar+0x40"] {
            assert_eq!(text.parse::<Site>().map(|site| site.to_string()), Ok(text.to_owned()));
        }
        let by_path = "/usr/bin/tar+0x1F0".parse::<Site>().map(|site| site.place);
        assert_eq!(by_path, Ok(CodeLocation::Address { module: "tar".to_owned(), linked: 0x1f0 }));
    }

    #[test]
    fn a_name_of_no_location_is_refused() {
        for text in ["", "@main", "keep@", "tar+0x", "tar+0xzz", "+0x10", "two words", "dir/+0x1"] {
            assert!(text.parse::<Site>().is_err(), "{text}");
        }
    }
}
