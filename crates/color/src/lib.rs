//! Cache coloring for objects of a power-of-two size in your own allocator.
