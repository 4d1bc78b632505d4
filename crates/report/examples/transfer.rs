//! Draws a made-up transfer curve, to look at: `cargo run -p senesce-report --example transfer
//! DIR`.

use std::{env, error::Error, fs, path::Path};

use senesce_report::{TransferOptions, render_transfer, render_transfer_svg};

#[path = "../tests/common/transfer.rs"]
mod sample;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = env::args().nth(1).ok_or("say where to")?;
    let transfer = sample::transfer();
    fs::write(Path::new(&dir).join("transfer.html"), render_transfer(&transfer, &TransferOptions::default())?)?;
    fs::write(Path::new(&dir).join("transfer.svg"), render_transfer_svg(&transfer))?;
    Ok(())
}
