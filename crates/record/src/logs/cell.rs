//! A row's fields as their columns store them.

use std::borrow::Cow;

/// Longest text of a cell. A longer one is cut when it is written and refused when it is read.
pub const MOST_TEXT_BYTES: usize = 1 << 20;

/// The kind of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 64-bit integers.
    Number,
    /// UTF-8 text.
    Text,
}

impl Kind {
    /// In the words of a message.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Number => "64-bit integers",
            Kind::Text => "text",
        }
    }
}

/// A cell in the form that its column stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored<'a> {
    /// Cell of a column of [`Kind::Number`].
    Number(i64),
    /// Cell of a column of [`Kind::Text`].
    Text(Cow<'a, str>),
}

impl Stored<'_> {
    fn number(&self) -> Result<i64, String> {
        match self {
            Stored::Number(number) => Ok(*number),
            Stored::Text(_) => Err("is text where a number is expected".to_owned()),
        }
    }

    fn into_text(self) -> Result<String, String> {
        match self {
            Stored::Text(text) => Ok(text.into_owned()),
            Stored::Number(_) => Err("is a number where text is expected".to_owned()),
        }
    }
}

/// A type of field that a column can keep.
pub trait Cell: Sized {
    /// Kind of the column.
    const KIND: Kind;

    /// Returns the field in the form that its column stores.
    fn store(&self) -> Stored<'_>;

    /// Reads the field from a value of its column.
    ///
    /// Errors: in words, what is wrong with a value that the field cannot have.
    fn load(stored: Stored<'_>) -> Result<Self, String>;
}

fn unfit(number: i64, expected: &str) -> String {
    format!("is {number}, expected {expected}")
}

/// Kept as it is up to 2^63-1, which is 292 years of nanoseconds; more is kept as 2^63-1.
impl Cell for u64 {
    const KIND: Kind = Kind::Number;

    fn store(&self) -> Stored<'_> {
        Stored::Number(i64::try_from(*self).unwrap_or(i64::MAX))
    }

    fn load(stored: Stored<'_>) -> Result<Self, String> {
        let number = stored.number()?;
        u64::try_from(number).map_err(|_| unfit(number, "no number below 0"))
    }
}

impl Cell for u32 {
    const KIND: Kind = Kind::Number;

    fn store(&self) -> Stored<'_> {
        Stored::Number((*self).into())
    }

    fn load(stored: Stored<'_>) -> Result<Self, String> {
        let number = stored.number()?;
        u32::try_from(number).map_err(|_| unfit(number, "a number from 0 to 4294967295"))
    }
}

impl Cell for bool {
    const KIND: Kind = Kind::Number;

    fn store(&self) -> Stored<'_> {
        Stored::Number((*self).into())
    }

    fn load(stored: Stored<'_>) -> Result<Self, String> {
        match stored.number()? {
            0 => Ok(false),
            1 => Ok(true),
            number => Err(unfit(number, "0 or 1")),
        }
    }
}

/// None is kept as -1.
impl Cell for Option<u64> {
    const KIND: Kind = Kind::Number;

    fn store(&self) -> Stored<'_> {
        self.as_ref().map_or(Stored::Number(-1), Cell::store)
    }

    fn load(stored: Stored<'_>) -> Result<Self, String> {
        match stored.number()? {
            -1 => Ok(None),
            number => u64::try_from(number).map(Some).map_err(|_| unfit(number, "no number below -1")),
        }
    }
}

/// None is kept as -1.
impl Cell for Option<u32> {
    const KIND: Kind = Kind::Number;

    fn store(&self) -> Stored<'_> {
        self.as_ref().map_or(Stored::Number(-1), Cell::store)
    }

    fn load(stored: Stored<'_>) -> Result<Self, String> {
        match stored.number()? {
            -1 => Ok(None),
            number => u32::try_from(number).map(Some).map_err(|_| unfit(number, "a number from -1 to 4294967295")),
        }
    }
}

impl Cell for String {
    const KIND: Kind = Kind::Text;

    fn store(&self) -> Stored<'_> {
        Stored::Text(Cow::Borrowed(self.get(..self.floor_char_boundary(MOST_TEXT_BYTES)).unwrap_or_default()))
    }

    fn load(stored: Stored<'_>) -> Result<Self, String> {
        stored.into_text()
    }
}

/// A virtual address; its column keeps it as text, `0x7f00`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

impl Cell for Address {
    const KIND: Kind = Kind::Text;

    fn store(&self) -> Stored<'_> {
        Stored::Text(format!("{:#x}", self.0).into())
    }

    fn load(stored: Stored<'_>) -> Result<Self, String> {
        let text = stored.into_text()?;
        let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'));
        let address = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        address.map(Address).ok_or_else(|| "is no address as in 0x7f00".to_owned())
    }
}
