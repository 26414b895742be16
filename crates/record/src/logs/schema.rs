//! The columns of a row type in the words of the Parquet library.

use super::cell::Kind;
use super::row::Column;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::errors::Result;
use parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// The schema of a file with these columns.
pub(super) fn of(columns: &[Column]) -> Result<TypePtr> {
    let fields: Result<Vec<TypePtr>> = columns.iter().map(field).collect();
    Ok(Arc::new(Type::group_type_builder("nearmiss").with_fields(fields?).build()?))
}

fn field(column: &Column) -> Result<TypePtr> {
    let builder = match column.kind {
        Kind::Number => Type::primitive_type_builder(column.name, Physical::INT64),
        Kind::Text => {
            Type::primitive_type_builder(column.name, Physical::BYTE_ARRAY).with_logical_type(Some(LogicalType::String))
        }
    };
    builder.with_repetition(Repetition::REQUIRED).build().map(Arc::new)
}
