//! The checks of every device before a request.

use crate::{BlockDevice, BlockError, BlockOperation, BlockProblem, BlockResult};

/// Whether a range is within the device and aligned.
pub(crate) fn check_range(
    device: &(impl BlockDevice + ?Sized),
    operation: BlockOperation,
    offset: u64,
    len: u64,
) -> BlockResult<()> {
    let alignment = u64::from(device.alignment());
    let problem = if offset.checked_add(len).is_none_or(|end| end > device.size().0) {
        BlockProblem::OutOfRange { size: device.size() }
    } else if !offset.is_multiple_of(alignment) || !len.is_multiple_of(alignment) {
        BlockProblem::Misaligned { alignment: device.alignment() }
    } else {
        return Ok(());
    };
    Err(BlockError::new(device.name(), operation, offset, len, problem))
}
