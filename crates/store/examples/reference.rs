//! Prints docs/reference/tables.md:
//! `cargo run -p senesce-store --example reference > docs/reference/tables.md`.

fn main() {
    print!("{}", senesce_store::reference_markdown());
}
