//! The tests of the model and the attribution, on streams of references made by hand or at random.

mod crowds;
mod model_carry;
mod model_counts;
mod model_filter;
mod model_first_level;
mod model_policy;
mod model_single;
mod parting;
mod sharing;
mod support;
