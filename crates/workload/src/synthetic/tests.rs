use super::*;
use senesce_core::Seed;

#[test]
#[ignore]
fn show() {
    let p = SyntheticParameters { seed: Seed(1), start_files: 17_360, commits: 34_000 };
    let s = compute_synthetic_statistics(SyntheticHistory::new(p).unwrap());
    println!("{}", render_statistics(&s));
}
