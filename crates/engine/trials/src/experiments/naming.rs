//! Names of experiments, as they are typed.

use std::fmt::Debug;

use crate::{Error, Result};

/// The one of `all` that is called so, in either case of letters. Errors: `Setup`, which names all that there are.
pub fn find_experiment<E: Copy + Debug>(all: &[E], text: &str) -> Result<E> {
    let name = |experiment: &E| format!("{experiment:?}");
    let found = all.iter().copied().find(|experiment| name(experiment).eq_ignore_ascii_case(text));
    found.ok_or_else(|| {
        let names: Vec<String> = all.iter().map(name).collect();
        Error::Setup { what: format!("no experiment {text:?}; there are {}", names.join(", ")) }
    })
}
