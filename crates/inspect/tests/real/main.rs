//! Inspections and models of real file systems on loop devices. Need root.

mod agreement;
mod inspection;
mod kinds;
mod offline;
mod support;
mod unmounted;
