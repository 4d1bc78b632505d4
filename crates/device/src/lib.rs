//! The device time model: a sequence of block requests becomes nanoseconds on a described device.
//!
//! Pure: no files, no clocks. Everything it says is of a *model*, and is called so wherever it is shown.

mod error;
mod model;

pub use error::Error;
pub use model::DeviceModel;
