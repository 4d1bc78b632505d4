//! Writes the page of published experiments: `cargo run --example reproduction -- PAGE [TABLE.json]`; without a table, of
//! made-up experiments.

#[path = "../tests/common/reproduction.rs"]
mod sample;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let page = arguments.next().ok_or("name a page")?;
    let table = match arguments.next() {
        Some(table) => serde_json::from_str(&std::fs::read_to_string(table)?)?,
        None => sample::reproduction(),
    };
    std::fs::write(page, senesce_report::render_reproduction(&table)?)?;
    Ok(())
}
