//! Guards against Parquet files that make the decoder of the library panic, or allocate much
//! memory.

use parquet::{basic::Encoding, column::page::Page, errors::ParquetError, file::reader::RowGroupReader};
use senesce_core::catch_panic;

/// Calls the library, and converts a panic of it to an error. It panics on some damaged files, for
/// example if a column starts before the file. Decoders of this crate run outside this function, so
/// that their panics stay visible.
pub(crate) fn call_library<T>(call: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let refuse = |text| Err(ParquetError::General(format!("the Parquet library cannot decode it: {text}")));
    catch_panic(call).unwrap_or_else(refuse)
}

/// Errors: a page has an encoding that an encoder without settings does not write, or a dictionary
/// with more values than bytes.
///
/// The decoder would allocate memory for numbers that such a page only states.
pub(crate) fn check_pages(group: &dyn RowGroupReader) -> Result<(), ParquetError> {
    let refuse = |what: &str| Err(ParquetError::General(format!("a page has {what}")));
    for column in 0..group.num_columns() {
        let mut pages = call_library(|| group.get_column_page_reader(column))?;
        while let Some(page) = call_library(|| pages.get_next_page())? {
            let is_known = matches!(
                page.encoding(),
                Encoding::PLAIN | Encoding::RLE | Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY
            );
            if !is_known {
                return refuse("an unknown encoding");
            }
            if matches!(page, Page::DictionaryPage { .. }) && page.num_values() as usize > page.buffer().len() {
                return refuse("a dictionary with more values than bytes");
            }
        }
    }
    Ok(())
}
