//! Cures that are interrupted at random moments, beside programs that use the same tree: kills and
//! losses of power.
//!
//! `SENESCE_CURE_KILLS` and `SENESCE_CURE_CUTS` are the numbers of kills and losses of power for
//! each case. `SENESCE_CURE_SEED` is the seed. `.ci/nightly` sets large numbers.

mod busy;
mod case;
mod commit;
mod gain;
mod kills;
mod power;

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

fn seed() -> senesce_core::Seed {
    senesce_core::Seed(number("SENESCE_CURE_SEED").unwrap_or(1))
}
