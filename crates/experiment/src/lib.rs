//! Plans become cells, cells become results, a journal makes it resumable.
