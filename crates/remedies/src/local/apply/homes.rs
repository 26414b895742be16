//! Homes, as `--home` gives them: which memory on which node.

/// Longest name of a program or library in a home.
const LONGEST_NAME: usize = 120;

/// Memory to place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// All that the command, and all that it starts, touches first.
    All,
    /// Mappings of the running processes, moved from outside.
    Named(Named),
    /// Memory that a call requests.
    Call {
        /// Name of the program's or library's file.
        module: String,
        /// Address of the call, as the file was linked.
        address: u64,
        /// Only the so many-th time, from 0.
        nth: Option<u64>,
        /// Bytes of the memory, half-open.
        bytes: (u64, u64),
    },
}

/// Mappings of a process, as `/proc/PID/maps` names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// The program break's memory.
    Heap,
    /// The first thread's stack.
    Stack,
    /// Mappings without a file.
    Anonymous,
    /// A file's private pages, by its path.
    File(String),
}

impl Named {
    /// Returns the mappings of this name in an option.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "heap" => Some(Named::Heap),
            "stack" => Some(Named::Stack),
            "anonymous" => Some(Named::Anonymous),
            path => path.starts_with('/').then(|| Named::File(path.to_owned())),
        }
    }

    /// Whether the kernel gives these mappings this name.
    pub fn is(&self, name: &str) -> bool {
        match self {
            Named::Heap => name == "[heap]",
            Named::Stack => name == "[stack]",
            Named::Anonymous => name.is_empty() || name.starts_with("[anon"),
            Named::File(path) => name == path,
        }
    }
}

/// Node to place memory on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The node of this number, while it has room.
    Node(u32),
    /// Page by page over all nodes.
    Interleave,
}

/// A home: which memory on which node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeOf {
    /// Memory to place.
    pub mapping: Mapping,
    /// Node to place it on.
    pub target: Target,
}

/// `MAPPING=NODE`.
pub fn parse_home(text: &str) -> Result<HomeOf, String> {
    const HOW: &str = "write all=NODE, heap=NODE, /FILE=NODE or FILE+0xADDRESS=NODE (with #N and :FROM-TO before the = where wanted), and interleave for a node";
    let (mapping, target) = text.rsplit_once('=').ok_or(HOW)?;
    let target = match target {
        "interleave" => Target::Interleave,
        node => Target::Node(node.parse().ok().filter(|node| *node < 64).ok_or(HOW)?),
    };
    let mapping = match Named::parse(mapping) {
        _ if mapping == "all" => Mapping::All,
        Some(named) => Mapping::Named(named),
        None => parse_call(mapping).ok_or(HOW)?,
    };
    Ok(HomeOf { mapping, target })
}

/// `FILE+0xADDRESS[#N][:FROM-TO]`.
fn parse_call(text: &str) -> Option<Mapping> {
    let (call, bytes) = match text.rsplit_once(':') {
        Some((call, range)) => (call, parse_range(range)?),
        None => (text, (0, u64::MAX)),
    };
    let (call, nth) = match call.rsplit_once('#') {
        Some((call, nth)) => (call, Some(nth.parse().ok()?)),
        None => (call, None),
    };
    let (module, address) = call.rsplit_once("+0x")?;
    let sound = !module.is_empty() && module.len() <= LONGEST_NAME && !module.contains(['+', ';', '/']);
    let address = u64::from_str_radix(address, 16).ok().filter(|_| sound)?;
    Some(Mapping::Call { module: module.to_owned(), address, nth, bytes })
}

fn parse_range(text: &str) -> Option<(u64, u64)> {
    let (from, to) = text.split_once('-')?;
    let size = |text: &str| {
        let shift = [("k", 10), ("K", 10), ("M", 20), ("G", 30)].into_iter().find(|(unit, _)| text.ends_with(unit));
        let digits = if shift.is_some() { &text[..text.len() - 1] } else { text };
        digits.parse::<u64>().ok()?.checked_mul(1 << shift.map_or(0, |(_, shift)| shift))
    };
    Some((size(from)?, size(to)?)).filter(|(from, to)| from < to)
}

/// Writes a home as `native/preload/local/rules.c` reads it.
pub fn rule(home: &HomeOf) -> Option<String> {
    let Mapping::Call { module, address, nth, bytes } = &home.mapping else { return None };
    let nth = nth.map_or(String::new(), |nth| format!("#{nth}"));
    let target = match home.target {
        Target::Node(node) => node.to_string(),
        Target::Interleave => "i".to_owned(),
    };
    Some(format!("{module}+{address:x}{nth}:{:x}-{:x}={target}", bytes.0, bytes.1))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_read_and_written_for_the_library() {
        let read = |text: &str| rule(&parse_home(text).unwrap());
        assert_eq!(read("p+0x11d9=1").as_deref(), Some("p+11d9:0-ffffffffffffffff=1"));
        assert_eq!(read("lib.so.1+0xa#3:4096-1M=interleave").as_deref(), Some("lib.so.1+a#3:1000-100000=i"));
        assert_eq!(parse_home("all=interleave"), Ok(HomeOf { mapping: Mapping::All, target: Target::Interleave }));
        for wrong in ["", "all", "all=x", "p=1", "p+11=1", "p+0x1:5-4=1", "a/b+0x1=1", "p+0x1=64", "p+0x1#x=1"] {
            assert!(parse_home(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn mappings_are_chosen_by_their_names() {
        let parsed = ["heap", "stack", "anonymous", "/bin/x", "x"].map(Named::parse);
        let file = Some(Named::File("/bin/x".into()));
        assert_eq!(parsed, [Some(Named::Heap), Some(Named::Stack), Some(Named::Anonymous), file, None]);
        assert!(Named::Anonymous.is("[anon:arena]") && !Named::Anonymous.is("[heap]"));
    }
}
