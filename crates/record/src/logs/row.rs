//! The description of a row type, and the macro that declares one.

use super::cell::{Kind, Stored};

/// Most entries that an observation logs of a kind; later ones are counted as lost.
pub const MOST_LOGGED: usize = 2_000_000;

/// A column of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name; it carries the unit.
    pub name: &'static str,
    /// Kind of its cells.
    pub kind: Kind,
    /// Value of the column in files that are older than it; none if every file has the column.
    pub absent: Option<i64>,
}

/// Hands out the cells of a row, one column after the other.
pub type Next<'n, 'a> = &'n mut dyn FnMut() -> Result<Stored<'a>, String>;

/// A row of a log.
pub trait Row: Sound + Sized {
    /// Name of the file in the run directory.
    const FILE: &'static str;
    /// Name and version of the columns and their meaning.
    const SCHEMA: &'static str;
    /// The columns, in the order of the fields.
    const COLUMNS: &'static [Column];

    /// Hands each cell to `put`, in the order of the columns.
    fn store<'a>(&'a self, put: &mut dyn FnMut(Stored<'a>));

    /// A row of its cells, taken from `next` in the order of the columns.
    ///
    /// Errors: in words, what is wrong with the cell taken last.
    fn load<'a>(next: Next<'_, 'a>) -> Result<Self, String>;
}

/// Invariants between the fields of a row.
pub trait Sound {
    /// Errors: the invariant that does not hold.
    fn sound(&self) -> Result<(), &'static str> {
        Ok(())
    }
}

/// Declares a row type: its fields are its columns, in the order of the file. A number behind a field is its column's
/// value for the rows of files of before the column.
macro_rules! rows {
    (
        $(#[$doc:meta])*
        $name:ident in $file:literal as $schema:literal {
            $($(#[$field_doc:meta])* $field:ident: $type:ty $(= $absent:literal)?,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl $crate::logs::Row for $name {
            const FILE: &'static str = $file;
            const SCHEMA: &'static str = $schema;
            const COLUMNS: &'static [$crate::logs::Column] = &[$($crate::logs::Column {
                name: stringify!($field),
                kind: <$type as $crate::logs::Cell>::KIND,
                absent: $crate::logs::row::first(&[$($absent)?]),
            },)*];

            fn store<'a>(&'a self, put: &mut dyn FnMut($crate::logs::Stored<'a>)) {
                $(put($crate::logs::Cell::store(&self.$field));)*
            }

            fn load<'a>(next: $crate::logs::Next<'_, 'a>) -> Result<Self, String> {
                Ok($name { $($field: $crate::logs::Cell::load(next()?)?,)* })
            }
        }
    };
}
pub(super) use rows;

/// The first of at most one number.
pub(super) const fn first(of: &[i64]) -> Option<i64> {
    of.first().copied()
}
