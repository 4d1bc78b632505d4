//! Measures: collect touches the system, score is pure.
