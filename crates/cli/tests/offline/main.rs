//! The tests of verbs that read files, and of the house rules: none needs a privilege or runs long.

mod circles;
mod compare;
mod destination;
mod documents;
mod edges;
mod machine;
mod product;
mod report;
mod road;
mod schema;
mod style;
