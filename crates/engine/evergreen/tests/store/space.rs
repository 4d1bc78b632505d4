//! Little space.
