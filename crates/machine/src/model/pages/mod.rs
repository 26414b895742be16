//! Pages: where each lies in the modelled machine, and which node is its home.

pub(crate) mod homes;
pub(crate) mod page_of;
pub(crate) mod places;
pub(crate) mod seen;
