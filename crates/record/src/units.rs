//! Numbers with their units in the type.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// A clock count of the modelled machine.
    Cycles(u64)
);
number!(
    /// A time in nanoseconds.
    Nanos(u64)
);
number!(
    /// A CPU as Linux counts them: one hardware thread.
    CpuId(u32)
);
number!(
    /// A memory node.
    NodeId(u32)
);
number!(
    /// A physical address divided by a line size, which depends on the context.
    LineAddr(u64)
);
number!(
    /// A guest kernel's `task_struct` address: names a task while it lives.
    TaskRef(u64)
);
number!(
    /// Index into a trace's instruction table ([`crate::side::Insn`]).
    InsnId(u32)
);
number!(
    /// Index into a trace's calling-context tree ([`crate::side::Context`]); 0 is the root.
    ContextId(u32)
);

/// A size in bytes. In text: a number with an optional `KiB`, `MiB`, `GiB` (or `K`, `M`, `G`: the same).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Reads `64`, `48 KiB`, `1MiB`, `2G`. Errors name the expected form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        let shift = match unit.trim() {
            "" | "B" => 0,
            "K" | "KiB" | "k" | "KB" => 10,
            "M" | "MiB" | "MB" => 20,
            "G" | "GiB" | "GB" => 30,
            "T" | "TiB" | "TB" => 40,
            other => return Err(format!("unknown unit `{other}` in size `{text}`; use KiB, MiB or GiB")),
        };
        number
            .parse::<u64>()
            .ok()
            .and_then(|n| n.checked_mul(1 << shift))
            .map(Bytes)
            .ok_or_else(|| format!("`{text}` is not a size; write for example `48 KiB`"))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
            if self.0 >= 1 << shift && self.0.is_multiple_of(1 << shift) {
                return write!(f, "{} {unit}", self.0 >> shift);
            }
        }
        write!(f, "{} B", self.0)
    }
}

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(u64),
            Text(String),
        }
        match Either::deserialize(d)? {
            Either::Number(n) => Ok(Bytes(n)),
            Either::Text(t) => Bytes::parse(&t).map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_and_print() {
        assert_eq!(Bytes::parse("48 KiB").unwrap(), Bytes(49152));
        assert_eq!(Bytes::parse("2G").unwrap().to_string(), "2 GiB");
        assert_eq!(Bytes(1500).to_string(), "1500 B");
        assert!(Bytes::parse("12 parsecs").unwrap_err().contains("parsecs"));
        assert!(Bytes::parse("99999999999999999999").is_err());
        assert!(Bytes::parse("99999999999 T").is_err());
    }
}
