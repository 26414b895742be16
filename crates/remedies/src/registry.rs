use nearmiss_analysis::Remedy;

/// Every remedy: one line each.
pub const REMEDIES: &[&Remedy] = &[
    &crate::apart::REMEDY,
    &crate::bypass::REMEDY,
    &crate::color::REMEDY,
    &crate::huge::REMEDY,
    &crate::keep::REMEDY,
    &crate::layout::REMEDY,
    &crate::local::REMEDY,
    &crate::pace::REMEDY,
    &crate::pair::REMEDY,
];
