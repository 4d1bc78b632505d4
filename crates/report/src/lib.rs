//! Results become one self-contained HTML report, SVG and PNG.
