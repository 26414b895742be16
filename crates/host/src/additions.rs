//! Figures of additions to lines that another CPU adds to as well, and of loads of such lines.

use serde::{Deserialize, Serialize};

/// A figure of each case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Additions<T> {
    /// To one line, with a store to another line behind each.
    pub one: T,
    /// To one of several lines.
    pub several: T,
    /// To one line, without other stores.
    pub lone: T,
    /// From one addition to one line to the next, with stores to four other lines between.
    pub between_stores: T,
    /// To one line, with 160 instructions between.
    pub far: T,
    /// From one load to the next of one line that the other CPU stores to, with 160 instructions between.
    pub far_load: T,
    /// To one line, with a computation that begins with the sum.
    pub needed: T,
    /// A load of one line, with a computation that begins with the value.
    pub needed_load: T,
}

impl<T> Additions<T> {
    /// Returns what `make` makes of each figure.
    pub fn each<U>(self, mut make: impl FnMut(T) -> U) -> Additions<U> {
        Additions {
            one: make(self.one),
            several: make(self.several),
            lone: make(self.lone),
            between_stores: make(self.between_stores),
            far: make(self.far),
            far_load: make(self.far_load),
            needed: make(self.needed),
            needed_load: make(self.needed_load),
        }
    }
}

impl Additions<Vec<f64>> {
    /// Adds the takes of another moment.
    pub fn extend(&mut self, more: Additions<Vec<f64>>) {
        self.one.extend(more.one);
        self.several.extend(more.several);
        self.lone.extend(more.lone);
        self.between_stores.extend(more.between_stores);
        self.far.extend(more.far);
        self.far_load.extend(more.far_load);
        self.needed.extend(more.needed);
        self.needed_load.extend(more.needed_load);
    }
}
