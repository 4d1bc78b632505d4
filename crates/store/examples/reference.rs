//! Prints docs/results.md: `cargo run -p senesce-store --example reference > docs/results.md`.

fn main() {
    print!("{}", senesce_store::reference_markdown());
}
