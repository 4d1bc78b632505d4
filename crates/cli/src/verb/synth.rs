//! `senesce synth`: a synthetic git history.

use anyhow::Result;

use crate::args::SynthArgs;

/// Makes the repository, and shows its statistics if asked.
pub fn synth(_args: SynthArgs) -> Result<()> {
    anyhow::bail!("pending")
}
