//! Parses the names of experiments.

use std::fmt::Debug;

use crate::{Error, Result};

/// Finds an experiment of `all` by its name; upper and lower case are equal. Errors: `Setup`, with
/// all names.
pub fn find_experiment<E: Copy + Debug>(all: &[E], text: &str) -> Result<E> {
    let name = |experiment: &E| format!("{experiment:?}");
    let found = all.iter().copied().find(|experiment| name(experiment).eq_ignore_ascii_case(text));
    found.ok_or_else(|| {
        let names: Vec<String> = all.iter().map(name).collect();
        Error::Setup { what: format!("no experiment {text:?}; there are {}", names.join(", ")) }
    })
}
