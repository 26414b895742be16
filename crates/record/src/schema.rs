//! Schemas: the name of each record's format, by which a reader refuses another version's.

use serde::de::DeserializeOwned;

/// A record of a run, with its schema.
pub trait Record: DeserializeOwned {
    /// The schema that this version reads and writes.
    const SCHEMA: &'static str;

    /// The schema that the record has.
    fn schema(&self) -> &str;
}

/// A type with a field `schema`, in a module with a `SCHEMA`, is a [`Record`].
macro_rules! is_record {
    ($type:ty) => {
        impl $crate::schema::Record for $type {
            const SCHEMA: &'static str = SCHEMA;

            fn schema(&self) -> &str {
                &self.schema
            }
        }
    };
}
pub(crate) use is_record;

/// Whether a field has the value of records that lack it.
pub(crate) fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}
